"""Tests of benchmarks/house.py on a house of a few lines."""

from benchmarks import house

_FILES = {
    "bert_tf/__init__.py": "",
    "bert_tf/alone.py": '"""Doc.\n\nMore.\n"""\n\nA = 1  # one\n# none\n',
    "bert_tf/left/__init__.py": "",
    "bert_tf/left/a.py": "from bert_tf import alone\nimport bert_tf.left.b\n",
    "bert_tf/left/b.py": "def f():\n    from bert_tf.right.c import C\n",
    "bert_tf/right/c.py": "from bert_tf.left import a\n\nC = 1\n",
    "bert_tf/tasks/squad/d.py": "from bert_tf.tasks import labels\n",
    "bert_tf/tasks/labels.py": (
        'flags.DEFINE_integer("max_seq_length", 1, "")\n'
        '_DATA.integer("max_seq_length", 1)\n'
        'flag_sections.Section("Data").integer("max_seq_length", 1)\n'
        'x.get("max_seq_length", 1)\n'
    ),
    "run.py": "def main():\n    def inner():\n        pass\n",
}


def _sources(root):
    for name, text in _FILES.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return {x.name: x for x in house._sources(root)}


def test_rooms_arrows_and_circles(tmp_path):
    found = house._house(list(_sources(tmp_path).values()))
    assert found == {
        "rooms": [
            "alone 1",
            "left/ 2",
            "right/ 1",
            "tasks.labels 1",
            "tasks.squad 1",
        ],
        "of one module": 4,
        "modules": 6,
        # left -> alone, left -> right, right -> left, squad -> labels
        "arrows between rooms": 4,
        "circles of rooms": ["left/ <-> right/"],
    }


def test_definitions_of_a_flag(tmp_path):
    source = _sources(tmp_path)["bert_tf/tasks/labels.py"]
    assert house._definitions(source, "max_seq_length") == 3
    assert house._definitions(source, "seed") == 0


def test_lines_of_code_are_no_comments_or_docstrings(tmp_path):
    source = _sources(tmp_path)["bert_tf/alone.py"]
    assert (source.lines, house._code_lines(source)) == (7, 1)


def test_functions_count_those_inside(tmp_path):
    source = _sources(tmp_path)["run.py"]
    found = dict(house._functions(source.tree))
    assert found == {"main": 3, "main.inner": 2}
