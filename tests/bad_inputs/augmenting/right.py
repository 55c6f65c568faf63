"""What looks wrong to augment_data.py, and rightly works."""

from tests.bad_inputs import matrix

RIGHT = {
    "as it is": matrix.Case({}, "Wrote {out}/more.tsv: 2 rows in, "),
    "odd rows": matrix.Case({"input_file": "{data}/odd.tsv"}, "3 rows in, "),
    "an odd name": matrix.Case(
        {"output_file": "{out}/é ü 博 %s {{}}.tsv"}, "博 %s"
    ),
    "another name by the format": matrix.Case(
        {
            "input_file": "{data}/plain",
            "output_file": "{out}/x.csv",
            "file_format": "tsv",
        },
        "Wrote {out}/x.csv: 2 rows in, ",
    ),
}
