// A field in which a gene is typed and chosen: a combobox with a list, after the pattern of the ARIA guide.

import { asked, make } from "./parts.js";

let count = 0;

// `take` is given the gene that was chosen; `read` texts of several genes, as they are pasted;
// `leave` is called by Backspace in an empty field, `next` by Enter in one.
export function geneBox({ label, take, read, leave, next }) {
  const id = `genes-${++count}`;
  const list = make("ul", { role: "listbox", id, class: "options", hidden: true, "aria-label": "Genes" });
  const input = make("input", {
    type: "text", role: "combobox", "aria-expanded": "false", "aria-controls": id, "aria-autocomplete": "list",
    "aria-label": label, autocomplete: "off", autocapitalize: "off", spellcheck: "false", maxlength: "4000",
    placeholder: "type a gene", input: complete, keydown: press, blur: close, paste,
  });
  let genes = [], chosen = -1, waiting = null;

  async function complete() {
    waiting?.abort();
    const text = input.value.trim();
    if (!text) return close();
    waiting = new AbortController();
    try {
      const answer = await asked(`/api/complete?text=${encodeURIComponent(text)}`, undefined, waiting.signal);
      if (document.activeElement === input) show(answer.genes);
    } catch (error) {
      if (error.name !== "AbortError") close();
    }
  }

  function show(found) {
    genes = found;
    list.replaceChildren(...genes.map((gene, i) => make("li", {
      role: "option", id: `${id}-${i}`, pointerdown: (event) => { event.preventDefault(); pick(i); },
    },
      make("b", {}, gene.label),
      make("span", {}, [
        gene.name === gene.label ? "" : gene.name,
        [gene.name, gene.label].includes(gene.matched) ? "" : `alias ${gene.matched}`,
        gene.essential ? "essential" : "",
      ].filter(Boolean).join(" · ")),
      gene.description ? make("small", {}, gene.description) : "")));
    list.hidden = !genes.length;
    input.setAttribute("aria-expanded", String(!list.hidden));
    mark(genes.length ? 0 : -1);
  }

  function mark(i) {
    chosen = i;
    [...list.children].forEach((option, at) => option.setAttribute("aria-selected", String(at === i)));
    if (i < 0) input.removeAttribute("aria-activedescendant");
    else {
      input.setAttribute("aria-activedescendant", `${id}-${i}`);
      list.children[i].scrollIntoView({ block: "nearest" });
    }
  }

  function close() {
    waiting?.abort();
    show([]);
  }

  function pick(i) {
    const gene = genes[i];
    input.value = "";
    close();
    take(gene);
  }

  function press(event) {
    const text = input.value.trim(), steps = { ArrowDown: 1, ArrowUp: -1 };
    if (event.key in steps && genes.length) {
      event.preventDefault();
      mark((chosen + steps[event.key] + genes.length) % genes.length);
    } else if (event.key === "ArrowDown" && text) {
      event.preventDefault();
      complete();
    } else if (event.key === "Escape") {
      if (genes.length) close();
      else input.value = "";
    } else if (event.key === "Enter") {
      event.preventDefault();
      if (!text) next();
      else if (chosen >= 0 && !/[,;\s:]/.test(text)) pick(chosen);
      else send(text);
    } else if (/^[,;\s]$/.test(event.key) && text) {
      event.preventDefault();
      send(text);
    } else if (event.key === "Backspace" && !input.value) {
      leave();
    }
  }

  // What stands in the field stays there until it could be read.
  async function send(text) {
    close();
    if (await read(text.split("\n"))) input.value = "";
  }

  function paste(event) {
    const text = event.clipboardData.getData("text");
    if (!/[,;\n]/.test(text.trim())) return;
    event.preventDefault();
    send(`${input.value}${text}`);
  }

  return { input, box: make("div", { class: "typed" }, input, list) };
}
