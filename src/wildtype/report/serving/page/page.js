// The page: what is asked (mutants, condition, interval) stands in the address; every change asks anew.

import { ask, asked, at, called, genesShown, make, written } from "./parts.js";
import { geneBox } from "./gene_box.js";
import { key, nearest, predictions } from "./tables.js";
import { drawing, edgeTable, legend } from "./drawing.js";

const LEVELS = [0.5, 0.8, 0.9, 0.95], SHOWN = 3, WAIT = 120;

let model = null;
let mutants = [[]];       // lists of genes, as /api/read gives them
let last = null;          // what was asked for the table that stands there, and its answer
let selected = 0;         // the mutant that is looked at, by its number in the table
let around = null;        // its neighbourhood
let timer = 0, turn = 0;  // a change makes answers to what was asked before void
const hidden = new Set(); // relations that are not drawn

// ------------------------------------------------------------------------------------------------- what is asked

const request = () => ({
  sets: mutants.filter((genes) => genes.length).map((genes) => genes.map((gene) => `${gene.name}:${gene.kind}`)),
  condition: model.conditions.length > 1 ? at("condition").value : null,
  interval: Number(at("interval").value) || null,
  fitness: at("fitness").checked,
});

function toAddress() {
  const words = new URLSearchParams();
  for (const genes of mutants) if (genes.length) words.append("mutant", genes.map(written).join(","));
  if (words.size) {
    if (model.conditions.length > 1 && at("condition").selectedIndex) words.set("condition", at("condition").value);
    words.set("interval", at("interval").value);
    if (at("fitness").checked) words.set("fitness", "yes");
  }
  const address = words.toString().replaceAll("%2C", ",").replaceAll("%3A", ":");
  history.replaceState(null, "", address ? `#${address}` : location.pathname);
}

async function fromAddress() {
  const words = new URLSearchParams(location.hash.slice(1));
  const choose = (select, value) => {
    if ([...select.options].some((option) => option.value === value)) select.value = value;
  };
  choose(at("condition"), words.get("condition"));
  choose(at("interval"), words.get("interval"));
  at("fitness").checked = model.fitness && words.has("fitness");
  mutants = [[]];
  selected = 0;
  await read(words.getAll("mutant"), 0);
  changed();
}

// Put the sets that lines name in place of an empty mutant or behind a mutant; whether all could be read.
async function read(lines, place) {
  let sets = [];
  try {
    if (lines.length) sets = (await asked("/api/read", { lines })).sets;
  } catch (error) {
    complain(error.message);
    return false;
  }
  const wrong = sets.filter((set) => set.error);
  const good = sets.filter((set) => set.genes).map((set) => set.genes);
  complain(wrong.map((set) => set.error).join(" · "));
  place = Math.min(place, mutants.length - 1); // some may have been removed while the server read
  if (good.length) mutants.splice(mutants[place].length ? place + 1 : place, mutants[place].length ? 0 : 1, ...good);
  return !wrong.length;
}

function busy(is, ...places) {
  for (const place of places) at(place).setAttribute("aria-busy", String(is));
}

function complain(sentence) {
  at("wrong").textContent = sentence;
}

// ------------------------------------------------------------------------------------------------- mutants

// The lists of genes are others than those that are shown.
function changed(focus = -1) {
  showMutants(focus);
  askAnew();
}

function askAnew() {
  turn += 1;
  toAddress();
  busy(true, "table", "around");
  clearTimeout(timer);
  timer = setTimeout(predict, WAIT);
}

function showMutants(focus) {
  const rows = mutants.map(mutantRow);
  at("mutants").replaceChildren(...rows.map((row) => row.item));
  if (focus >= 0) rows[Math.min(focus, rows.length - 1)].input.focus();
}

function mutantRow(genes, place) {
  const { input, box } = geneBox({
    label: `Genes of mutant ${place + 1}`,
    take: (gene) => add(place, [{ ...gene, usual: gene.kind }]),
    read: (lines) => readInto(place, lines),
    leave: () => { if (genes.pop()) changed(place); },
    next: () => { if (genes.length) insert(place + 1); },
  });
  const chips = genes.map((gene, i) => chip(gene, () => { genes.splice(i, 1); changed(place); }));
  const away = make("button", {
    type: "button", class: "away", "aria-label": `Remove mutant ${place + 1}`,
    click: () => { mutants.splice(place, 1); if (!mutants.length) mutants = [[]]; changed(Math.max(place - 1, 0)); },
  }, "×");
  return { input, item: make("li", {}, make("div", { class: "mutant" }, chips, box, away)) };
}

function chip(gene, remove) {
  const kinds = [...new Set([...model.kinds, gene.kind])];
  const chooser = kinds.length > 1 && make("select", {
    "aria-label": `What is done to ${gene.label}`,
    change: (event) => { gene.kind = event.target.value; askAnew(); },
  }, kinds.map((kind) => make("option", { value: kind, selected: kind === gene.kind }, kind)));
  return make("span", { class: "chip", title: `${called(gene)}${gene.essential ? ", essential" : ""}` },
    gene.label, gene.essential ? make("abbr", { title: "essential" }, "!") : "", chooser || "",
    make("button", { type: "button", "aria-label": `Remove ${gene.label}`, click: remove }, "×"));
}

function add(place, genes) {
  place = Math.min(place, mutants.length - 1);
  const twice = genes.find((gene) => mutants[place].some((other) => other.name === gene.name));
  if (twice) return complain(`${called(twice)} is in this mutant already: a gene counts once.`);
  if (mutants[place].length + genes.length > model.most.genes) {
    return complain(`A mutant of this page has up to ${model.most.genes} genes.`);
  }
  complain("");
  mutants[place].push(...genes);
  changed(place);
}

function insert(place) {
  if (mutants.length >= model.most.mutants) return complain(`This page holds up to ${model.most.mutants} mutants.`);
  if (!mutants[place]?.length && place < mutants.length) return showMutants(place);
  mutants.splice(place, 0, []);
  showMutants(place);
}

// Of one line the genes join the mutant; of several lines each is a mutant.
async function readInto(place, lines) {
  const full = lines.filter((line) => line.trim());
  if (full.length > 1) {
    const all = await read(full, place);
    changed(place);
    return all;
  }
  try {
    const [set] = (await asked("/api/read", { lines: full })).sets;
    if (set.error) complain(set.error);
    else add(place, set.genes);
    return !set.error;
  } catch (error) {
    complain(error.message);
    return false;
  }
}

// ------------------------------------------------------------------------------------------------- answers

async function predict() {
  const mine = turn, wanted = request();
  at("predictions").hidden = at("around").hidden = !wanted.sets.length;
  if (!wanted.sets.length) return;
  try {
    const answer = await asked("/api/predict", wanted);
    if (mine !== turn) return;
    last = { wanted, answer };
    selected = Math.min(selected, answer.mutants.length - 1);
    showPredictions();
    busy(false, "table");
    await look(mine);
  } catch (error) {
    if (mine !== turn) return;
    at("predictions").hidden = at("around").hidden = true;
    complain(error.message);
  }
}

function shownPhenotypes() {
  const word = at("wanted").value.trim().toLowerCase();
  return model.phenotypes.flatMap((p, i) => (p.name.toLowerCase().includes(word) ? [i] : [])).slice(0, SHOWN);
}

function showPredictions() {
  const shown = shownPhenotypes(), count = last.answer.mutants.length;
  const level = last.wanted.interval;
  at("table").replaceChildren(predictions({
    mutants: last.answer.mutants, model, shown, level, selected,
    select: (i) => { selected = i; showPredictions(); at("table").querySelectorAll(".choose")[i].focus(); look(turn); },
  }));
  at("key").replaceChildren(...(shown.length ? key(level) : []));
  const some = shown.length < model.phenotypes.length
    ? `; ${shown.length} of ${model.phenotypes.length} phenotypes are shown, the files hold all` : "";
  at("said").textContent = `${count} ${count === 1 ? "mutant" : "mutants"} predicted${some}`;
}

// Show what is known around the selected mutant.
async function look(mine) {
  const { wanted, answer } = last, genes = answer.mutants[selected].genes, number = selected;
  const one = { sets: [wanted.sets[number]], condition: wanted.condition };
  busy(true, "around");
  let near, neighbours;
  try {
    [near, neighbours] = await Promise.all([asked("/api/nearest", one), asked("/api/neighbourhood", one)]);
  } catch (error) {
    if (mine === turn) complain(error.message);
    return;
  }
  if (mine !== turn || number !== selected) return;
  at("title").replaceChildren("Around ", ...genesShown(genes));
  at("nearest").replaceChildren(nearest({ mutants: near.mutants, model, shown: shownPhenotypes(), most: SHOWN }));
  at("source").hidden = !near.mutants.length;
  at("source").textContent = near.reads_evidence
    ? "Beside the mutant itself, these are measurements that the model looks up to predict it."
    : "This model looks no measurements up; these share all genes but one, the most extreme first.";
  around = neighbours;
  showNeighbourhood();
  busy(false, "around");
}

function showNeighbourhood() {
  at("local").parentElement.hidden = !model.relations.length;
  if (!around || !model.relations.length) return;
  const names = model.relations.filter((name) => around.edges.some((edge) => edge.relation === name));
  const focus = [...at("legend").querySelectorAll("input")].indexOf(document.activeElement);
  at("legend").replaceChildren(...legend(model.relations, hidden, showNeighbourhood)
    .filter((_, i) => names.includes(model.relations[i])));
  if (focus >= 0) at("legend").querySelectorAll("input")[focus].focus();
  const width = Math.max(Math.floor(at("drawing").clientWidth), 260);
  at("drawing").replaceChildren(drawing(around, model.relations, hidden, width));
  const count = around.genes.length - around.perturbed;
  at("drawn").textContent = !count ? "No relation that the model keeps links these genes to others."
    : `${count} neighbours are drawn${around.left_out ? `, ${around.left_out} weaker ones are not` : ""}. `
      + "A thick line is a strong link; a ring marks an essential gene.";
  at("edges").replaceChildren(edgeTable(around, hidden));
}

async function save(path, name) {
  try {
    const file = await (await ask(path, last.wanted)).blob();
    const link = make("a", { href: URL.createObjectURL(file), download: name });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
  } catch (error) {
    complain(error.message);
  }
}

// ------------------------------------------------------------------------------------------------- start

function introduce() {
  document.title = `wildtype: ${model.name}`;
  const what = model.phenotypes.map((p) => p.name);
  const named = what.length > 3 ? `${what.length} phenotypes` : what.join(", ");
  const test = model.phenotypes.length === 1 ? model.phenotypes[0].pearson : null;
  at("model").textContent = `${model.name}: a ${model.model} of ${named}`
    + `${model.dataset ? `, trained on ${model.dataset}` : ""}, for ${model.genes.toLocaleString("en")} genes of `
    + `${model.organism}${test == null ? "" : `; Pearson ${test.toFixed(2)} on its test mutants`}.`;
  const remarks = [...model.remarks];
  if (model.per_gene.length) {
    remarks.push(`${model.per_gene.join(", ")} is a number per gene of the cell: wildtype predict --genes gives it.`);
  }
  if (!model.intervals) remarks.push("This model was saved without what intervals are made of.");
  at("remarks").replaceChildren(...remarks.map((remark) => make("p", {}, remark)));
  at("interval").replaceChildren(make("option", { value: "" }, "none"), ...(model.intervals ? LEVELS : []).map(
    (level) => make("option", { value: level, selected: level === 0.9 }, `${level * 100} %`)));
  at("condition").replaceChildren(...model.conditions.map((name) => make("option", { value: name }, name)));
  at("conditions").hidden = model.conditions.length < 2;
  at("fitnesses").hidden = !model.fitness;
  at("phenotypes").hidden = model.phenotypes.length <= SHOWN;
  at("examples").replaceChildren(...(model.examples.length ? ["For example: "] : []), ...model.examples.map(
    ({ line, shown }) => make("button", {
      type: "button", class: "example", click: async () => { await read([line], mutants.length - 1); changed(); },
    }, shown)));
}

async function start() {
  try {
    model = await asked("/api/model");
  } catch (error) {
    return complain(error.message);
  }
  introduce();
  at("add").addEventListener("click", () => {
    const free = mutants.findIndex((genes) => !genes.length);
    insert(free < 0 ? mutants.length : free);
  });
  at("clear").addEventListener("click", () => { mutants = [[]]; complain(""); changed(0); });
  at("paste").addEventListener("click", () => {
    at("pasted").hidden = !at("pasted").hidden;
    at("paste").setAttribute("aria-expanded", String(!at("pasted").hidden));
    if (!at("pasted").hidden) at("lines").focus();
  });
  at("take").addEventListener("click", async () => {
    const all = await read(at("lines").value.split("\n").filter((line) => line.trim()), mutants.length - 1);
    if (all) at("lines").value = "";
    changed();
  });
  for (const id of ["condition", "interval", "fitness"]) at(id).addEventListener("change", askAnew);
  at("wanted").addEventListener("input", () => { if (last) { showPredictions(); look(turn); } });
  at("csv").addEventListener("click", () => save("/api/table.csv", "mutants.csv"));
  at("json").addEventListener("click", () => save("/api/table.json", "mutants.json"));
  addEventListener("hashchange", fromAddress);
  let width = 0;
  new ResizeObserver(() => {
    const now = at("drawing").clientWidth;
    if (now !== width && around) showNeighbourhood();
    width = now;
  }).observe(at("drawing"));
  await fromAddress();
}

start();
