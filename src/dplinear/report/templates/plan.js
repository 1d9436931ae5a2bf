"use strict";
(() => {
  const grid = JSON.parse(document.getElementById("grid").textContent);
  const ids = ["amount", "rows", "columns"];
  const words = ["budget", "rows", "features"];
  const inputs = ids.map((id) => document.getElementById(id));
  const outputs = ids.map((id) => document.getElementById(`${id}-out`));
  const svg = document.getElementById("chart");
  const body = document.querySelector("#ranking tbody");
  const said = document.getElementById("said");
  const narrow = window.matchMedia("(max-width: 560px)");
  const labels = [grid.unit, "n", "d"];

  // Logarithms, interpolated along the logarithms of all axes.
  const ends = (axis, value) => {
    let low = 0;
    while (low < axis.length - 2 && value >= axis[low + 1]) low += 1;
    const share = Math.log(value / axis[low]) / Math.log(axis[low + 1] / axis[low]);
    return [low, Math.min(Math.max(share, 0), 1)];
  };
  const between = (values, place) => {
    const at = place.map((value, axis) => ends(grid.axes[axis], value));
    const [, across, deep] = grid.axes.map((axis) => axis.length);
    let total = 0;
    for (let corner = 0; corner < 8; corner += 1) {
      const side = [corner >> 2, (corner >> 1) & 1, corner & 1];
      let weight = 1;
      for (let axis = 0; axis < 3; axis += 1) weight *= side[axis] ? at[axis][1] : 1 - at[axis][1];
      if (weight === 0) continue;
      const [i, j, k] = side.map((one, axis) => at[axis][0] + one);
      total += weight * Math.log(values[(i * across + j) * deep + k]);
    }
    return Math.exp(total);
  };

  const place = () => inputs.map((input, axis) => grid.stops[axis][Number(input.value)]);
  const errorsAt = (where) => grid.errors.map((values) => between(values, where));
  const bestOf = (errors) => {
    const limit = grid.alike * Math.min(...errors.filter((_, each) => grid.exact[each]));
    return errors.findIndex((error, each) => grid.exact[each] && error <= limit);
  };

  const figure = (value) => {
    if (value >= 1e-4 && value < 1e4) return Number(value.toPrecision(2)).toString();
    const [mantissa, exponent] = value.toExponential(1).split("e");
    const raised = String(Number(exponent)).replace(/[-0-9]/g, (sign) => "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"["-0123456789".indexOf(sign)]);
    return `${mantissa}·10${raised}`;
  };
  const named = (axis, value) => `${labels[axis]} = ${axis ? value.toLocaleString("en") : String(value)}`;

  const make = (name, facts, text) => {
    const made = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(facts)) made.setAttribute(key, value);
    if (text !== undefined) made.textContent = text;
    return made;
  };
  const tick = (value) => {
    const power = Math.round(Math.log10(value));
    if (value >= 0.01 && value < 1e6) return value.toLocaleString("en");
    return figure(10 ** power).replace(/^1(\.0)?·/, "");
  };
  const round = (value) => Math.round(value * 10) / 10;

  const draw = (axis, where, errors, best, ranks) => {
    const wide = !narrow.matches;
    const [width, height] = wide ? [680, 400] : [340, 340];
    const [left, right, top, bottom] = [58, width - 30, 16, height - 34];
    const nodes = grid.axes[axis];
    const [first, last] = [nodes[0], nodes[nodes.length - 1]];
    const steps = Array.from({ length: 61 }, (_, step) => first * (last / first) ** (step / 60));
    const moved = (value) => where.map((own, each) => (each === axis ? value : own));
    const curves = grid.errors.map((values) => steps.map((value) => between(values, moved(value))));
    const least = grid.floor === null ? [] : steps.map((value) => between(grid.floor, moved(value)));
    const all = [...curves.flat(), ...least, ...(grid.trivial === null ? [] : [grid.trivial])];
    const low = Math.floor(Math.log10(Math.min(...all)));
    const high = Math.ceil(Math.log10(Math.min(Math.max(...all), 1e3)));
    const x = (value) => round(left + (Math.log(value / first) / Math.log(last / first)) * (right - left));
    const y = (value) => round(bottom - ((Math.min(Math.log10(value), high) - low) / (high - low)) * (bottom - top));
    const path = (line) => `M${line.map((value, step) => `${x(steps[step])},${y(value)}`).join("L")}`;
    const parts = [];
    const stride = Math.ceil((high - low) / 7);
    for (let power = low; power <= high; power += stride) {
      const down = y(10 ** power);
      parts.push(make("line", { class: "grid", x1: left, x2: right, y1: down, y2: down }));
      parts.push(make("text", { x: left - 8, y: down + 4.5, "text-anchor": "end" }, tick(10 ** power)));
    }
    let written = -Infinity;
    for (let power = Math.floor(Math.log10(first)); 10 ** power <= last; power += 1) {
      for (const factor of [1, 2, 5]) {
        const value = Number(`${factor}e${power}`);
        if (value < first || value > last || x(value) < written + (wide ? 52 : 62)) continue;
        if (axis === 1 && factor !== 1) continue;
        written = x(value);
        parts.push(make("text", { x: written, y: bottom + 20, "text-anchor": "middle" }, tick(value)));
      }
    }
    parts.push(make("text", { class: "strong", x: right + 24, y: bottom + 20, "text-anchor": "end" }, labels[axis]));
    if (grid.trivial !== null) {
      parts.push(make("line", { class: "trivial", x1: left, x2: right, y1: y(grid.trivial), y2: y(grid.trivial) }));
    }
    if (least.length) parts.push(make("path", { class: "floor", d: path(least) }));
    const order = curves.map((_, each) => each).sort((one, two) => (one === best) - (two === best));
    for (const each of order) {
      const own = each === best ? "curve best" : "curve";
      parts.push(make("path", { class: `${own} c${each % 8}`, d: path(curves[each]), "data-name": grid.names[each] }));
    }
    const here = x(where[axis]);
    parts.push(make("line", { class: "mark", x1: here, x2: here, y1: top, y2: bottom }));
    for (const each of order) {
      parts.push(make("circle", { class: `point c${each % 8}`, cx: here, cy: y(errors[each]), r: each === best ? 6 : 4 }));
    }
    // Numbers at the ends of the curves, pushed apart where they would meet.
    const tags = curves.map((line, each) => [y(line[line.length - 1]), each]).sort((one, two) => one[0] - two[0]);
    let before = -Infinity;
    for (const tag of tags) { tag[0] = Math.max(tag[0], before + 14); before = tag[0]; }
    let after = bottom;
    for (const tag of tags.slice().reverse()) { tag[0] = Math.min(tag[0], after); after = tag[0] - 14; }
    for (const [down, each] of tags) {
      parts.push(make("text", { class: "tag", x: right + 7, y: round(down + 4.5) }, String(ranks[each])));
    }
    svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    svg.replaceChildren(...parts);
  };

  const sample = (each, best) => {
    const made = make("svg", { class: "sample", viewBox: "0 0 44 12", width: 44, height: 12, "aria-hidden": "true" });
    made.append(make("path", { class: `${best ? "curve best" : "curve"} c${each % 8}`, d: "M2,6L42,6" }));
    return made;
  };
  const rank = (errors, order, best, floor) => {
    const rows = order.map((each, position) => {
      const row = document.createElement("tr");
      const head = document.createElement("th");
      head.scope = "row";
      head.textContent = `${position + 1}. ${grid.names[each]}${each === best ? " (recommended)" : ""}`;
      const curve = document.createElement("td");
      curve.append(sample(each, each === best));
      const cells = [figure(errors[each]), floor ? `${figure(errors[each] / floor)}×` : "–"].map((text) => {
        const cell = document.createElement("td");
        cell.textContent = text;
        return cell;
      });
      row.dataset.name = grid.names[each];
      row.dataset.error = errors[each];
      if (each === best) row.className = "chosen";
      row.append(head, curve, ...cells);
      return row;
    });
    body.replaceChildren(...rows);
  };

  // As Plan.reason has it.
  const compared = (floor, error) => {
    if (!floor) return "Without privacy there would be none.";
    const harmed = 1.05 * error < floor ? ": heavy tails harm it more" : "";
    return `The usual answer without privacy has ${figure(floor)}${harmed}.`;
  };

  const show = () => {
    const where = place();
    const errors = errorsAt(where);
    const best = bestOf(errors);
    const floor = grid.floor === null ? 0 : between(grid.floor, where);
    const axis = Number(document.querySelector("input[name=across]:checked").value);
    inputs.forEach((input, each) => {
      const text = named(each, where[each]);
      outputs[each].textContent = text;
      input.setAttribute("aria-valuetext", text);
    });
    const order = errors.map((_, each) => each).sort((one, two) => errors[one] - errors[two] || one - two);
    const ranks = [];
    order.forEach((each, position) => { ranks[each] = position + 1; });
    document.getElementById("chart-title").textContent = `Error against ${words[axis]}`;
    const hopeless = grid.trivial !== null && errors[best] >= 0.9 * grid.trivial;
    said.textContent = `At ${where.map((value, each) => named(each, value)).join(", ")}: ${grid.names[best]}, with an error of about ${figure(errors[best])}. `
      + `${compared(floor, errors[best])}${hopeless ? " That is no better than an answer without data." : ""}`;
    said.dataset.floor = floor;
    draw(axis, where, errors, best, ranks);
    rank(errors, order, best, floor);
  };

  for (const input of document.querySelectorAll(".sliders input")) input.addEventListener("input", show);
  document.querySelector(".sliders").addEventListener("submit", (event) => event.preventDefault());
  document.getElementById("again").addEventListener("click", () => {
    inputs.forEach((input, each) => { input.value = grid.start[each]; });
    show();
  });
  narrow.addEventListener("change", show);
  document.getElementById("explorer").hidden = false;
  inputs.forEach((input, each) => { input.value = grid.start[each]; });
  show();
})();
