// The tables of predictions and of measured mutants, and the drawn intervals.

import { called, decimals, draw, genesShown, make, number, table } from "./parts.js";

const WIDTH = 112, HEIGHT = 22;
const percent = (level) => `${Math.round(level * 1000) / 10} %`;
const PARTS = { train: "training", given: "your own", unused: "not used", hidden: "not used" };

// Predictions of shown phenotypes; `select` is called with the number of a mutant.
export function predictions({ mutants, model, shown, level, selected, select }) {
  const several = shown.length > 1;
  const columns = [{ name: "mutant" }];
  const makers = [(mutant, i) => make("button", {
    type: "button", class: "choose", "aria-pressed": String(i === selected), click: () => select(i),
  }, genesShown(mutant.genes))];
  for (const p of shown) {
    const phenotype = model.phenotypes[p];
    const all = mutants.map((mutant) => mutant.predictions[p]);
    const { sd } = model.known.find((known) => known.name === phenotype.name);
    const digits = decimals(sd), scale = scaleOf(all, sd ?? 0);
    const unit = phenotype.form === "class" ? "probability" : phenotype.unit;
    const name = `${phenotype.name}${unit && unit !== phenotype.name ? ` (${unit})` : ""}`;
    columns.push({ name, class: "number" });
    makers.push((mutant) => prediction(mutant.predictions[p], digits, level));
    columns.push({ name: several ? `measured ${phenotype.name}` : "measured", class: "number" });
    makers.push((mutant) => number(mutant.predictions[p].measured, digits));
    columns.push({ name: several ? `${phenotype.name} drawn` : "drawn", class: "drawn" });
    makers.push((mutant) => interval(mutant.predictions[p], scale, digits, phenotype.name));
  }
  if (mutants.some((mutant) => mutant.fitness !== null)) {
    columns.push({ name: "expected fitness ± sd", class: "number" });
    makers.push((mutant) => mutant.fitness == null ? "–"
      : `${number(mutant.fitness, 3)} ± ${number(mutant.fitness_sd, 3)}`);
  }
  columns.push({ name: "in training", class: "words" }, { name: "notes", class: "words wide" });
  makers.push(seen, notes);
  const rows = mutants.map((mutant, i) => ({
    class: i === selected ? "selected" : "", cells: makers.map((maker) => maker(mutant, i)),
  }));
  return table(columns, rows);
}

function prediction(one, digits, level) {
  const around = level && one.low != null
    ? `${percent(level)}: ${number(one.low, digits)} … ${number(one.high, digits)}` : "";
  return [
    make("b", {}, number(one.value, digits)),
    around && make("small", {}, around),
    one.sd == null ? "" : make("small", {}, `sd of members: ${number(one.sd, digits)}`),
  ];
}

function seen(mutant) {
  const count = mutant.genes.length;
  const genes = mutant.genes_seen === count ? (count === 1 ? "its gene" : `all ${count} genes`)
    : `${mutant.genes_seen} of ${count} ${count === 1 ? "gene" : "genes"}`;
  return mutant.order_seen ? genes : `${genes}; no mutant of ${count} ${count === 1 ? "gene" : "genes"}`;
}

function notes(mutant) {
  const essential = mutant.genes.filter((gene) => gene.essential).map(called);
  return [essential.length ? `essential: ${essential.join(", ")}` : "", mutant.note].filter(Boolean).join("; ");
}

// The span of everything drawn of a phenotype, an sd at least, and 0 where that lies in it or near.
function scaleOf(all, sd) {
  const numbers = all.flatMap((one) => [one.value, one.low, one.high, one.measured]).filter(Number.isFinite);
  if (!numbers.length) return null;
  let low = Math.min(...numbers), high = Math.max(...numbers);
  const narrow = Math.max(sd - (high - low), 0) / 2;
  [low, high] = [low - narrow, high + narrow];
  const span = high - low || Math.abs(high) || 1;
  if (low > 0 && low < span / 2) low = 0;
  if (high < 0 && -high < span / 2) high = 0;
  const room = 0.06 * span;
  return { low: low - room, high: high + room };
}

function interval(one, scale, digits, name) {
  if (!scale || one.value == null) return "–";
  const x = (value) => ((value - scale.low) / (scale.high - scale.low)) * WIDTH;
  const middle = HEIGHT / 2, parts = [];
  if (scale.low < 0 && scale.high > 0) {
    parts.push(draw("line", { class: "zero", x1: x(0), x2: x(0), y1: 0, y2: HEIGHT }));
  }
  if (one.low != null) {
    parts.push(draw("rect", {
      class: "interval", x: x(one.low), width: Math.max(x(one.high) - x(one.low), 1), y: middle - 4, height: 8, rx: 2,
    }));
  }
  if (one.measured != null) parts.push(measuredMark(x(one.measured), middle));
  parts.push(draw("circle", { class: "predicted", cx: x(one.value), cy: middle, r: 3.6 }));
  const told = `${name} ${number(one.value, digits)}`
    + (one.low == null ? "" : `, interval ${number(one.low, digits)} to ${number(one.high, digits)}`)
    + (one.measured == null ? "" : `, measured ${number(one.measured, digits)}`);
  return draw("svg", {
    class: "span", role: "img", "aria-label": told, width: WIDTH, height: HEIGHT, viewBox: `0 0 ${WIDTH} ${HEIGHT}`,
  }, draw("title", {}, told), parts);
}

const measuredMark = (x, y) =>
  draw("path", { class: "measured", d: `M${x - 5.5} ${y}L${x} ${y - 5.5}L${x + 5.5} ${y}L${x} ${y + 5.5}Z` });

// What the marks of drawn intervals mean.
export function key(level) {
  const mark = (part) => draw("svg", { width: 22, height: 14, viewBox: "0 0 22 14", "aria-hidden": "true" }, part);
  return [
    mark(draw("circle", { class: "predicted", cx: 11, cy: 7, r: 3.6 })), make("span", {}, "predicted"),
    ...(level ? [mark(draw("rect", { class: "interval", x: 1, y: 3, width: 20, height: 8, rx: 2 })),
      make("span", {}, `holds ${percent(level)} of mutants like it`)] : []),
    mark(measuredMark(11, 7)), make("span", {}, "measured"),
  ];
}

// Measured mutants like one, with the values of the shown phenotypes and of others that were measured.
export function nearest({ mutants, model, shown, most }) {
  const predicted = shown.map((p) => model.phenotypes[p].name);
  const others = model.known.map((known) => known.name).filter((name) =>
    !model.phenotypes.some((p) => p.name === name) && mutants.some((one) => name in one.values));
  const names = [...predicted, ...others].slice(0, most);
  const columns = [{ name: "mutant" }, { name: "difference", class: "words" }];
  const makers = [(one) => genesShown(one.genes), difference];
  if (model.conditions.length > 1) {
    columns.push({ name: "condition", class: "words" });
    makers.push((one) => one.condition);
  }
  for (const name of names) {
    const digits = decimals(model.known.find((known) => known.name === name).sd);
    columns.push({ name, class: "number" });
    makers.push((one) => (name in one.values ? measuredValue(one.values[name], digits) : "–"));
  }
  columns.push({ name: "part of the data" });
  makers.push((one) => {
    const parts = predicted.flatMap((name) => one.values[name]?.parts ?? []);
    return [...new Set(parts)].map((part) => PARTS[part] ?? part).join(", ") || "–";
  });
  const having = mutants.filter((one) => names.some((name) => name in one.values));
  return having.length
    ? table(columns, having.map((one) => ({ class: one.how === "the same genes" ? "same" : "",
      cells: makers.map((maker) => maker(one)) })))
    : make("p", { class: "said" }, "Nothing was measured of this mutant or of one like it.");
}

const measuredValue = (value, digits) =>
  `${number(value.value, digits)}${value.count > 1 ? ` (mean of ${value.count})` : ""}`;

function difference(one) {
  const [old, fresh] = [one.old, one.new].map((genes) => genes.map((gene) => gene.label));
  const alike = one.likeness == null ? "" : `, likeness ${number(one.likeness, 2)}`;
  if (one.how === "removed") return `without ${old.join(", ")}`;
  if (one.how === "added") return `and ${fresh.join(", ")}`;
  if (!old.length) return "the same genes";
  return `${fresh.map((gene, i) => `${gene} for ${old[i]}`).join(", ")}${alike}`;
}
