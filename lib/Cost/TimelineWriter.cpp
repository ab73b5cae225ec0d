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

/// Draws `data`: rows of [name, spans], each span [activity, begin, end, line];
/// barriers as [row, time, name]. The wheel zooms, dragging moves.
static const char *const page = R"html(<!doctype html>
<meta charset="utf-8">
<title>@title@</title>
<style>
body { margin: 0; font: 13px sans-serif; color: #222; background: #fff }
header { padding: 8px 12px }
h1 { font-size: 15px; margin: 0 0 4px }
.key { display: inline-block; margin-right: 14px }
.key i { display: inline-block; width: 11px; height: 11px; margin-right: 4px }
#tip { height: 17px; padding: 2px 12px; font-family: monospace; white-space: pre; overflow: hidden }
canvas { display: block; width: 100%; cursor: grab }
</style>
<header><h1>@title@</h1><div id="keys"></div></header>
<div id="tip">Time is in SM cycles of the model. The wheel zooms, dragging moves.</div>
<canvas id="view"></canvas>
<script>
const data = @data@;
const colours = ['#8aa4c8', '#d98c3f', '#3f8f5b', '#b9a3d6', '#c96a6a', '#5aa9a3', '#eeeeee'];
const keys = document.getElementById('keys'), tip = document.getElementById('tip');
data.activities.forEach((name, i) => {
  const key = document.createElement('span'), box = document.createElement('i');
  key.className = 'key'; box.style.background = colours[i]; key.append(box, name); keys.append(key);
});
const view = document.getElementById('view'), c = view.getContext('2d');
const left = 150, top = 22, height = 16;
let from = 0, to = data.cycles || 1;
const x = t => left + (t - from) / (to - from) * (view.clientWidth - left);
const timeAt = px => from + (px - left) / (view.clientWidth - left) * (to - from);
function draw() {
  const ratio = devicePixelRatio || 1, width = view.clientWidth;
  const tall = top + data.rows.length * height + 4;
  view.width = width * ratio; view.height = tall * ratio; view.style.height = tall + 'px';
  c.setTransform(ratio, 0, 0, ratio, 0, 0); c.font = '11px sans-serif'; c.clearRect(0, 0, width, tall);
  let step = Math.pow(10, Math.floor(Math.log10((to - from) / 6 || 1)));
  if ((to - from) / step > 15) step *= 2.5;
  c.fillStyle = '#666'; c.strokeStyle = '#ddd';
  for (let t = Math.ceil(from / step) * step; t <= to; t += step) {
    c.fillText(String(Math.round(t)), x(t) + 2, 12);
    c.beginPath(); c.moveTo(x(t), 0); c.lineTo(x(t), tall); c.stroke();
  }
  data.rows.forEach(([name, spans], row) => {
    const y = top + row * height; let drawn = -1, last = -1;
    for (const [activity, begin, end] of spans) {
      if (end < from || begin > to) continue;
      const a = Math.max(x(begin), left), b = Math.min(x(end), width);
      // Spans below a pixel that would hide each other are drawn once.
      if (b < drawn + 0.3 && activity === last) continue;
      c.fillStyle = colours[activity]; c.fillRect(a, y + 1, Math.max(b - a, 0.6), height - 2);
      drawn = b; last = activity;
    }
    c.fillStyle = '#222'; c.fillText(name, 6, y + 12);
  });
  c.strokeStyle = '#000';
  for (const [row, time] of data.barriers)
    if (time >= from && time <= to) {
      const y = top + row * height;
      c.beginPath(); c.moveTo(x(time), y + 1); c.lineTo(x(time), y + height - 1); c.stroke();
    }
}
view.addEventListener('wheel', e => {
  e.preventDefault();
  const t = timeAt(e.offsetX), f = Math.exp(e.deltaY * 0.002);
  from = Math.max(0, t - (t - from) * f); to = Math.min(data.cycles, t + (to - t) * f); draw();
}, { passive: false });
let drag = null;
view.addEventListener('mousedown', e => { drag = [e.offsetX, from, to]; });
window.addEventListener('mouseup', () => { drag = null; });
view.addEventListener('mousemove', e => {
  if (drag) {
    let d = (drag[0] - e.offsetX) / (view.clientWidth - left) * (drag[2] - drag[1]);
    d = Math.min(Math.max(d, -drag[1]), data.cycles - drag[2]);
    from = drag[1] + d; to = drag[2] + d; draw(); return;
  }
  const row = data.rows[Math.floor((e.offsetY - top) / height)], t = timeAt(e.offsetX);
  const span = row && row[1].find(s => s[1] <= t && t <= s[2]);
  if (span) tip.textContent = `${row[0]}: ${data.activities[span[0]]}, cycles ${span[1]} to ${span[2]}, from line ${span[3]}: ${data.texts[span[3]] || ''}`;
});
window.addEventListener('resize', draw);
draw();
</script>
)html";

/// For text inside of tags.
static std::string escape(llvm::StringRef text) {
  std::string result;
  llvm::raw_string_ostream os(result);
  llvm::printHTMLEscaped(text, os);
  return result;
}

void Timeline::printHTML(llvm::raw_ostream &os, llvm::StringRef title) const {
  json::Array drawn, marks, activities;
  json::Object used;
  std::vector<unsigned> rowOfCta(ctas.size(), 0);
  for (unsigned i = 0; i < numActivities; ++i)
    activities.push_back(stringifyActivity(Activity(i)));
  for (uint32_t cta = 0; cta < ctas.size(); ++cta)
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
      if (row.warp == 0)
        rowOfCta[cta] = drawn.size();
      drawn.push_back(
          json::Array{nameOf(ctas[cta]) + " " + nameOf(row), std::move(spans)});
    }
  for (const TimelineBarrier &barrier : barriers)
    marks.push_back(json::Array{rowOfCta[barrier.cta],
                                int64_t(barrier.time + 0.5), barrier.name});
  json::Value data = json::Object{{"cycles", cycles},
                                  {"activities", std::move(activities)},
                                  {"rows", std::move(drawn)},
                                  {"barriers", std::move(marks)},
                                  {"texts", std::move(used)}};
  std::string text;
  llvm::raw_string_ostream(text) << data;
  // A script must not contain the end of a script.
  for (size_t at = 0; (at = text.find("</", at)) != std::string::npos; at += 3)
    text.replace(at, 2, "<\\/");
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
