"use strict";
const at = (id) => document.getElementById(id);

// Makes an element of text and other elements.
function make(tag, content = "", className = "") {
  const element = document.createElement(tag);
  element.className = className;
  element.append(...[content].flat());
  return element;
}

async function json(path, options) {
  const response = await fetch(path, options);
  const found = JSON.parse((await response.text()).replace(
    /(?<=[\[,:]\s*)(NaN|-?Infinity)(?=\s*[,\]}])/g, '"$1"'));
  if (!response.ok) throw new Error(found.error);
  return found;
}

function curl(path, body) {
  const url = new URL(path.replace(/^\//, ""), document.baseURI).href;
  const quoted = (text) => "'" + text.replaceAll("'", "'\\''") + "'";
  return "curl " + (/[^\w/:.%-]/.test(url) ? quoted(url) : url)
    + (body === undefined ? "" : " -d " + quoted(JSON.stringify(body)));
}

// A command with a button that copies it.
function command(text) {
  const box = make("pre", text);
  const button = make("button", "Copy", "copy");
  button.type = "button";
  button.onclick = async () => {
    getSelection().selectAllChildren(box);
    // The clipboard is there on HTTPS and on localhost only.
    if (navigator.clipboard) await navigator.clipboard.writeText(text);
    else document.execCommand("copy");
    button.textContent = "Copied";
  };
  return [box, button];
}

// The first ones of a long list.
const few = (values, most) => values.slice(0, most).join(", ")
  + (values.length > most ? ` and ${values.length - most} more` : "");

// What is known about a model, as terms and texts.
function facts(model) {
  const loading = model.loading.map((x) => "version " + x + " is loading");
  const state = model.state === "ready"
    ? ["version " + model.version, ...loading].join(", ") : "loading …";
  const all = model.labels ?? [];
  const labels = all.slice(0, 50).map((x) => make("span", x, "label"));
  if (all.length > 50) labels.push(` and ${all.length - 50} more`);
  const list = make("dl");
  for (const [name, text] of [
    ["State", state],
    ["Max length", model.max_seq_length && model.max_seq_length + " tokens"],
    ["Labels", labels.length && labels],
  ]) if (text) list.append(make("dt", name), make("dd", text));
  return list;
}
