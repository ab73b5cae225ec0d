//===- TimelineWriter.cpp - Timelines as files ----------------------------===//

#include "attn/Cost/Timeline.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir::attn::sim;
namespace json = llvm::json;

static std::string nameOf(const TimelineRow &row) {
  return row.warp < 0 ? "engines" : llvm::formatv("warp {0}", row.warp).str();
}

static std::string nameOf(const std::array<uint32_t, 3> &cta) {
  return llvm::formatv("CTA ({0},{1},{2})", cta[0], cta[1], cta[2]);
}

json::Value Timeline::toChromeTrace() const {
  json::Array events;
  auto name = [&](const char *what, uint32_t cta, int thread,
                  std::string text) {
    json::Object event{{"ph", "M"},
                       {"name", what},
                       {"pid", cta},
                       {"args", json::Object{{"name", std::move(text)}}}};
    if (thread >= 0)
      event["tid"] = thread;
    events.push_back(std::move(event));
  };
  // A process is a CTA. Thread 0 shows its engines, thread w + 1 warp w.
  for (uint32_t cta = 0; cta < ctas.size(); ++cta)
    name("process_name", cta, -1, nameOf(ctas[cta]));
  for (const TimelineRow &row : rows) {
    name("thread_name", row.cta, row.warp + 1, nameOf(row));
    for (const TimelineSpan &span : row.spans)
      events.push_back(json::Object{
          {"ph", "X"},
          {"name", stringifyActivity(span.activity)},
          {"cat", row.warp < 0 ? "engine" : "warp"},
          {"pid", row.cta},
          {"tid", row.warp + 1},
          {"ts", span.begin},
          {"dur", span.end - span.begin},
          {"args", json::Object{{"line", lines[span.instruction]},
                                {"instruction", texts[span.instruction]}}}});
  }
  for (const TimelineBarrier &barrier : barriers)
    events.push_back(json::Object{{"ph", "i"},
                                  {"s", "p"},
                                  {"name", barrier.name},
                                  {"cat", "barrier"},
                                  {"pid", barrier.cta},
                                  {"tid", 0},
                                  {"ts", barrier.time}});
  return json::Object{{"displayTimeUnit", "ns"},
                      {"otherData", json::Object{{"unit", "SM cycles"}}},
                      {"traceEvents", std::move(events)}};
}

/// Draws `data`: for each CTA its name, rows of [name, spans], each span
/// [activity, begin, end, line], and barriers as [time, name]. All names of the
/// script are its own: a page's window has names such as `top`, which a script
/// must not declare again. A CTA has a canvas of its own, as browsers limit how
/// tall one is. `data-shapes` says how much was drawn, for tests.
static const char *const page = R"html(<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>@title@</title>
<style>
body { margin: 0; font: 13px sans-serif; color: #222; background: #fff }
header { position: sticky; top: 0; background: #fff; border-bottom: 1px solid #ccc; padding-top: 8px }
h1 { font-size: 15px; margin: 0 12px 6px }
h2 { font-size: 12px; margin: 8px 8px 2px }
#keys { margin: 0 12px }
.key { display: inline-block; margin-right: 14px }
.key i { display: inline-block; width: 11px; height: 11px; margin-right: 4px; outline: 1px solid #ccc }
#tip { height: 17px; padding: 4px 12px; font-family: monospace; white-space: pre; overflow: hidden; text-overflow: ellipsis }
canvas { display: block; width: 100% }
#ctas { cursor: grab; user-select: none }
</style>
<header><h1>@title@</h1><div id="keys"></div><div id="tip"></div><canvas id="axis"></canvas></header>
<div id="ctas"></div>
<script>
(() => {
'use strict';
const data = @data@;
const colours = ['#8aa4c8', '#d98c3f', '#3f8f5b', '#b9a3d6', '#c96a6a', '#5aa9a3', '#eeeeee'];
const height = 16, margin = 8, axisHeight = 18, closest = 8;
const hint = 'Time is in SM cycles of the model. The wheel zooms, dragging moves, a double click shows all.';
const element = id => document.getElementById(id);
const make = (kind, parent) => parent.appendChild(document.createElement(kind));
const whole = Math.max(data.cycles, closest);
let from = 0, to = whole, left = 0, shapes = 0;

function addKey(name, colour, width) {
  const key = make('span', element('keys'));
  key.className = 'key';
  const box = make('i', key);
  box.style.background = colour;
  if (width) box.style.width = width;
  key.append(name);
}
data.activities.forEach((name, i) => addKey(name, colours[i]));
addKey('a phase of a barrier completes', '#000', '2px');

const measure = element('axis').getContext('2d');
measure.font = '11px sans-serif';
const charts = data.ctas.map(cta => {
  make('h2', element('ctas')).textContent = cta.name;
  const rows = cta.rows.slice();
  if (cta.barriers.length) rows.unshift(['barriers', []]);
  for (const [name] of rows) left = Math.max(left, measure.measureText(name).width + 2 * margin);
  return { cta, rows, canvas: make('canvas', element('ctas')) };
});

const x = (t, width) => left + (t - from) / (to - from) * (width - left);
const timeAt = (px, width) => from + (px - left) / (width - left) * (to - from);

/// A canvas of the page's width, cleared.
function begin(canvas, tall) {
  const ratio = devicePixelRatio || 1, width = canvas.clientWidth, c = canvas.getContext('2d');
  canvas.width = width * ratio; canvas.height = tall * ratio; canvas.style.height = tall + 'px';
  c.setTransform(ratio, 0, 0, ratio, 0, 0);
  c.font = '11px sans-serif';
  return [c, width];
}
/// Round times with room for their numbers.
function getMarks(width) {
  const least = (to - from) / Math.max((width - left) / 70, 1);
  let step = Math.pow(10, Math.floor(Math.log10(least)));
  step *= [1, 2, 5, 10].find(factor => step * factor >= least);
  const marks = [];
  for (let i = Math.ceil(from / step); i * step <= to; ++i) marks.push(i * step);
  return marks;
}
function drawAxis() {
  const [c, width] = begin(element('axis'), axisHeight);
  c.fillStyle = '#666';
  c.fillText('cycle', margin, 13);
  for (const t of getMarks(width)) {
    const number = String(+t.toPrecision(12));
    if (x(t, width) + 2 + c.measureText(number).width <= width) c.fillText(number, x(t, width) + 2, 13);
    c.fillRect(x(t, width), axisHeight - 5, 1, 5);
    ++shapes;
  }
}
function drawChart({ cta, rows, canvas }) {
  const [c, width] = begin(canvas, rows.length * height + 2);
  c.fillStyle = '#ddd';
  for (const t of getMarks(width)) c.fillRect(x(t, width), 0, 1, rows.length * height);
  rows.forEach(([name, spans], row) => {
    const y = row * height;
    let drawn = -1, last = -1;
    for (const [activity, start, end] of spans) {
      if (end < from || start > to) continue;
      const a = Math.max(x(start, width), left), b = Math.min(x(end, width), width);
      // Spans below a pixel that would hide each other are drawn once.
      if (b < drawn + 0.3 && activity === last) continue;
      c.fillStyle = colours[activity];
      c.fillRect(a, y + 1, Math.max(b - a, 0.6), height - 2);
      drawn = b; last = activity; ++shapes;
    }
    c.fillStyle = '#222';
    c.fillText(name, margin, y + 12);
  });
  c.fillStyle = '#000';
  for (const [time] of cta.barriers)
    if (time >= from && time <= to) {
      c.fillRect(x(time, width) - 0.5, 2, 1.5, height - 4);
      ++shapes;
    }
}
function draw() {
  shapes = 0;
  drawAxis();
  charts.forEach(drawChart);
  document.body.dataset.shapes = shapes;
}
/// What is at a place: a barrier within a few pixels, or a span.
function describe(chart, px, py, width) {
  const row = chart.rows[Math.floor(py / height)], t = timeAt(px, width);
  if (!row || px < left) return hint;
  if (row[0] === 'barriers') {
    const near = chart.cta.barriers.filter(([time]) => Math.abs(x(time, width) - px) < 4);
    return near.map(([time, name]) => `${name} completes a phase in cycle ${time}`).join('; ') || hint;
  }
  const span = row[1].find(([, start, end]) => start <= t && t <= end);
  if (!span) return hint;
  const [activity, start, end, line] = span;
  return `${row[0]}: ${data.activities[activity]}, cycles ${start} to ${end}, from line ${line}: ${data.texts[line] || ''}`;
}
let drag = null;
element('tip').textContent = hint;
for (const chart of charts) {
  const canvas = chart.canvas;
  canvas.addEventListener('wheel', e => {
    e.preventDefault();
    const t = timeAt(Math.max(e.offsetX, left), canvas.clientWidth);
    const f = Math.max(Math.exp(e.deltaY * 0.002), closest / (to - from));
    from = Math.max(0, t - (t - from) * f); to = Math.min(whole, t + (to - t) * f);
    draw();
  }, { passive: false });
  canvas.addEventListener('mousedown', e => { drag = [e.clientX, from, to]; });
  canvas.addEventListener('dblclick', () => { from = 0; to = whole; draw(); });
  canvas.addEventListener('mousemove', e => {
    if (!drag) element('tip').textContent = describe(chart, e.offsetX, e.offsetY, canvas.clientWidth);
  });
}
window.addEventListener('mouseup', () => { drag = null; });
window.addEventListener('mousemove', e => {
  if (!drag) return;
  const [start, first, end] = drag, width = element('axis').clientWidth;
  const moved = (start - e.clientX) / (width - left) * (end - first);
  const d = Math.min(Math.max(moved, -first), whole - end);
  from = first + d; to = end + d;
  draw();
});
window.addEventListener('resize', draw);
draw();
})();
</script>
</html>
)html";

/// For text inside of tags.
static std::string escape(llvm::StringRef text) {
  std::string result;
  llvm::raw_string_ostream os(result);
  llvm::printHTMLEscaped(text, os);
  return result;
}

void Timeline::printHTML(llvm::raw_ostream &os, llvm::StringRef title) const {
  json::Array drawn, activities;
  json::Object used;
  for (unsigned i = 0; i < numActivities; ++i)
    activities.push_back(stringifyActivity(Activity(i)));
  for (uint32_t cta = 0; cta < ctas.size(); ++cta) {
    json::Array shown, marks;
    for (const TimelineRow &row : rows) {
      if (row.cta != cta || (row.warp < 0 && row.spans.empty()))
        continue;
      json::Array spans;
      for (const TimelineSpan &span : row.spans) {
        spans.push_back(
            json::Array{unsigned(span.activity), int64_t(span.begin + 0.5),
                        int64_t(span.end + 0.5), lines[span.instruction]});
        used[std::to_string(lines[span.instruction])] = texts[span.instruction];
      }
      shown.push_back(json::Array{nameOf(row), std::move(spans)});
    }
    for (const TimelineBarrier &barrier : barriers)
      if (barrier.cta == cta)
        marks.push_back(json::Array{int64_t(barrier.time + 0.5), barrier.name});
    drawn.push_back(json::Object{{"name", nameOf(ctas[cta])},
                                 {"rows", std::move(shown)},
                                 {"barriers", std::move(marks)}});
  }
  json::Value data = json::Object{{"cycles", cycles},
                                  {"activities", std::move(activities)},
                                  {"ctas", std::move(drawn)},
                                  {"texts", std::move(used)}};
  std::string text;
  llvm::raw_string_ostream(text) << data;
  // A script must not contain the end of a script, nor of a comment. Angle
  // brackets are in strings alone.
  for (size_t at = 0; (at = text.find('<', at)) != std::string::npos; at += 6)
    text.replace(at, 1, "\\u003c");
  llvm::StringRef rest = page;
  while (!rest.empty()) {
    auto [before, marked] = rest.split('@');
    os << before;
    auto [key, after] = marked.split('@');
    if (key == "title")
      os << escape(title);
    else if (key == "data")
      os << text;
    rest = after;
  }
}
