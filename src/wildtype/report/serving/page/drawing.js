// The neighbourhood of a mutant's genes: its genes in the middle, their neighbours around, an arc per relation.

import { called, draw, make, number, table } from "./parts.js";

const COLOURS = 8, DASHES = 3, MARGIN = 26;

// The class of a relation by its number: a colour, then a dash where colours are used up.
export const lineClass = (i) => `e${i % COLOURS} d${Math.floor(i / COLOURS) % DASHES}`;

// Buttons that show and hide relations; `change` is called with the set of hidden ones.
export function legend(relations, hidden, change) {
  return relations.map((name, i) => make("label", {},
    make("input", {
      type: "checkbox", checked: !hidden.has(name),
      change: (event) => { event.target.checked ? hidden.delete(name) : hidden.add(name); change(); },
    }),
    draw("svg", { width: 28, height: 12, viewBox: "0 0 28 12", "aria-hidden": "true" },
      draw("path", { class: `edge ${lineClass(i)}`, d: "M1 6H27" })),
    name));
}

// The same input gives the same drawing, of a given width in pixels.
export function drawing({ genes, perturbed, edges, left_out: _ }, relations, hidden, width) {
  const height = Math.round(Math.min(Math.max(width * 0.8, 300), 560));
  const places = layout(genes.length, perturbed, edges, width, height);
  const between = new Map();
  for (const edge of edges.filter((one) => !hidden.has(one.relation))) {
    const pair = `${edge.left} ${edge.right}`;
    between.set(pair, [...(between.get(pair) ?? []), edge]);
  }
  const lines = [...between.values()].flatMap((same) => same.map((edge, i) => {
    const kind = edge.left < perturbed ? "" : " far";
    const told = `${genes[edge.left].label} – ${genes[edge.right].label}: ${edge.relation}, weight ${number(edge.weight, 2)}`;
    return draw("path", {
      class: `edge ${lineClass(relations.indexOf(edge.relation))}${kind}`,
      d: arc(places[edge.left], places[edge.right], (i - (same.length - 1) / 2) * 9),
      "stroke-width": 1 + 1.6 * edge.weight,
    }, draw("title", {}, told));
  }));
  const nodes = genes.map((gene, i) => {
    const own = i < perturbed, { x, y } = places[i];
    const side = x > width * 0.72 ? "end" : x < width * 0.28 ? "start" : "middle";
    const dx = side === "end" ? 8 : side === "start" ? -8 : 0;
    const up = y < height / 2 && !own ? -11 : 20;
    return draw("g", { class: own ? "node own" : "node" },
      draw("title", {}, `${called(gene)}${gene.essential ? ", essential" : ""}`),
      gene.essential ? draw("circle", { class: "ring", cx: x, cy: y, r: own ? 11 : 8.5 }) : "",
      draw("circle", { cx: x, cy: y, r: own ? 8 : 5.5 }),
      draw("text", { x: x + dx, y: y + up, "text-anchor": side }, gene.label));
  });
  const told = `${genes.slice(0, perturbed).map((gene) => gene.label).join(", ")} and `
    + `${genes.length - perturbed} neighbours; the table below says the same`;
  return draw("svg", {
    role: "img", "aria-label": told, width, height, viewBox: `0 0 ${width} ${height}`,
  }, lines, nodes);
}

function arc(from, to, bend) {
  const [dx, dy] = [to.x - from.x, to.y - from.y], length = Math.hypot(dx, dy) || 1;
  const x = (from.x + to.x) / 2 - (dy / length) * 2 * bend, y = (from.y + to.y) / 2 + (dx / length) * 2 * bend;
  const [a, b, c, d, e, f] = [from.x, from.y, x, y, to.x, to.y].map((value) => value.toFixed(1));
  return `M${a} ${b}Q${c} ${d} ${e} ${f}`;
}

// The mutant's genes on an inner ellipse, neighbours on an outer one, each near the genes that it goes with.
function layout(count, perturbed, edges, width, height) {
  const centre = { x: width / 2, y: height / 2 };
  const on = (angle, share) => ({
    x: centre.x + Math.cos(angle) * share * (width / 2 - MARGIN),
    y: centre.y + Math.sin(angle) * share * (height / 2 - MARGIN),
  });
  const start = perturbed === 2 ? Math.PI : -Math.PI / 2;
  const places = [];
  for (let i = 0; i < perturbed; i++) {
    places.push(perturbed === 1 ? centre : on(start + (2 * Math.PI * i) / perturbed, 0.44));
  }
  const wanted = [];
  for (let i = perturbed; i < count; i++) {
    let x = 0, y = 0;
    for (const edge of edges) {
      if (edge.right === i && edge.left < perturbed) {
        x += edge.weight * (places[edge.left].x - centre.x);
        y += edge.weight * (places[edge.left].y - centre.y);
      }
    }
    wanted.push({ i, angle: Math.hypot(x, y) > 1e-6 ? Math.atan2(y, x) : (2.4 * i) % (2 * Math.PI) - Math.PI });
  }
  wanted.sort((a, b) => a.angle - b.angle || a.i - b.i);
  const first = wanted.length ? meanAngle(wanted) : 0;
  wanted.forEach(({ i }, rank) => {
    places[i] = on(first + (2 * Math.PI * rank) / wanted.length, rank % 2 && wanted.length > 10 ? 0.86 : 1);
  });
  return places;
}

// The turn that brings evenly spaced places nearest to the angles that are wanted.
function meanAngle(wanted) {
  let x = 0, y = 0;
  wanted.forEach(({ angle }, rank) => {
    const turn = angle - (2 * Math.PI * rank) / wanted.length;
    x += Math.cos(turn);
    y += Math.sin(turn);
  });
  return Math.atan2(y, x);
}

// The edges of the mutant's own genes as a table.
export function edgeTable({ genes, perturbed, edges }, hidden) {
  const rows = edges.filter((edge) => edge.left < perturbed && !hidden.has(edge.relation)).map((edge) => ({
    cells: [genes[edge.left].label, genes[edge.right].label, edge.relation, number(edge.weight, 2)],
  }));
  return table([{ name: "gene" }, { name: "neighbour", class: "words" }, { name: "relation", class: "words" },
    { name: "weight", class: "number" }], rows);
}
