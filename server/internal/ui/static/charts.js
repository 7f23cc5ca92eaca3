// Charts of the last minutes, drawn by uPlot.

import uPlot from "./uplot/uPlot.esm.js";
import { el } from "./dom.js";

// keptSeconds is how far back a chart reaches.
const keptSeconds = 180;
const height = 150;

// series draws one value over time. add takes the value of now, or null if there is none.
export function series(name, colour, format, signal) {
  const plot = el("div", { class: "plot", role: "img", "aria-label": name });
  const figure = el("figure", { class: "chart" }, el("figcaption", {}, name), plot);
  const times = [], values = [];
  const axis = { stroke: () => getComputedStyle(plot).color, grid: { stroke: "#8884", width: 1 }, ticks: { stroke: "#8884", width: 1 }, font: "12px system-ui, sans-serif" };
  let chart;
  const width = () => Math.max(plot.clientWidth, 100);
  function draw() {
    chart = new uPlot({
      width: width(), height, legend: { show: false }, cursor: { show: false },
      scales: { y: { range: (_, __, most) => [0, Math.max(1, most * 1.1)] } },
      axes: [{ ...axis, space: 80 }, { ...axis, size: 70, values: (_, ticks) => ticks.map(format) }],
      series: [{}, { stroke: () => getComputedStyle(figure).color, width: 2, points: { show: false }, spanGaps: false }],
    }, [times, values], plot);
  }
  figure.classList.add(colour);
  const observer = new ResizeObserver(() => chart?.setSize({ width: width(), height }));
  observer.observe(plot);
  signal.addEventListener("abort", () => { observer.disconnect(); chart?.destroy(); });
  return {
    figure,
    add(value) {
      const now = Date.now() / 1000;
      times.push(now);
      values.push(value);
      while (times[0] < now - keptSeconds) { times.shift(); values.shift(); }
      if (chart) chart.setData([times, values]); else draw();
      plot.setAttribute("aria-label", `${name}: ${value === null ? "nothing" : format(value)} now`);
    },
  };
}
