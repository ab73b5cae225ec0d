#!/usr/bin/env python3
"""A server of a language model in small: pages, continuous batching, shared prefixes,
prompts in chunks, and drafts in a tree that one launch verifies.

    PYTHONPATH=python python3 examples/serve/serve.py            # numpy, on the simulator
    PYTHONPATH=python python3 examples/serve/serve.py --torch    # a GPU, steps in CUDA graphs

The model has two layers and random weights. All tokens and their logits are compared with
those of a dense run of it in float64 that has no cache. Exit status 1 when a logit differs by
more than 0.02; other tokens than the dense run's are counted.
"""

from __future__ import annotations

import argparse
import collections
import dataclasses
import sys
import time

import attn
import numpy as np

#: Of a draft's tree, the parent of each node and how far it is behind the root, the last
#: token that is known: two guesses of what follows, and two more behind the first one.
PARENTS, DEPTHS = (0, 0, 0, 1), (0, 1, 1, 2)


@dataclasses.dataclass(frozen=True)
class Shape:
    """Of the model, and of what the server holds."""

    layers: int = 2
    heads: int = 4
    kv_heads: int = 2
    dim: int = 64
    vocabulary: int = 48
    page: int = 16
    max_pages: int = 6
    pages: int = 28
    #: Sequences of a step, and rows of the chunks of prompts in it.
    batch: int = 4
    rows: int = 32

    @property
    def hidden(self) -> int:
        return self.heads * self.dim


class Model:
    """Weights, and everything but attention. `to` makes numpy's arrays tensors."""

    def __init__(self, shape: Shape, to=lambda array: array, seed: int = 7) -> None:
        rng = np.random.default_rng(seed)
        wide, inner = shape.hidden, (shape.heads + 2 * shape.kv_heads) * shape.dim

        def draw(rows: int, columns: int, factor: float = 1.0):
            values = rng.standard_normal((rows, columns)) * (factor * rows**-0.5)
            return to(values.astype(np.float32))

        self.shape = shape
        self.tokens = to(rng.standard_normal((shape.vocabulary, wide)).astype(np.float32))
        places = shape.page * shape.max_pages + len(PARENTS)
        self.places = to(rng.standard_normal((places, wide)).astype(np.float32))
        self.head = draw(wide, shape.vocabulary)
        # Such that few keys decide, and a wrong one is seen.
        self.qkv = [draw(wide, inner, 1.6) for _ in range(shape.layers)]
        self.out = [draw(wide, wide, 2.0) for _ in range(shape.layers)]
        self.up = [draw(wide, 2 * wide) for _ in range(shape.layers)]
        self.down = [draw(2 * wide, wide) for _ in range(shape.layers)]

    @staticmethod
    def normalise(x):
        return x * ((x * x).mean(-1)[..., None] + 1e-6) ** -0.5

    def embed(self, tokens, positions):
        return self.tokens[tokens] + self.places[positions]

    def project(self, layer: int, x):
        """q, k and v of rows, (rows, heads, dim)."""
        s = self.shape
        flat = self.normalise(x) @ self.qkv[layer]
        parts = flat.reshape(x.shape[0], s.heads + 2 * s.kv_heads, s.dim)
        return parts[:, : s.heads], parts[:, s.heads : -s.kv_heads], parts[:, -s.kv_heads :]

    def finish(self, layer: int, x, o):
        x = x + o.reshape(x.shape) @ self.out[layer]
        return x + (self.normalise(x) @ self.up[layer]).clip(0) @ self.down[layer]

    def score(self, x):
        """Logits of the token behind each row."""
        return self.normalise(x) @ self.head

    def choose(self, x):
        """The next token behind each row, and its logit."""
        logits = self.score(x)
        tokens = logits.argmax(-1)
        return tokens, logits.reshape(-1)[_count(tokens) * logits.shape[-1] + tokens]

    def run_dense(self, tokens: list[int]):
        """Logits behind each token of a sequence, (tokens, vocabulary), all keys at once."""
        s, count = self.shape, len(tokens)
        x = self.embed(np.array(tokens), np.arange(count)).astype(np.float64)
        hidden = np.triu(np.full((count, count), -np.inf), 1)
        for layer in range(s.layers):
            q, k, v = self.project(layer, x)
            k, v = (np.repeat(each, s.heads // s.kv_heads, 1) for each in (k, v))
            scores = np.einsum("qhd,khd->hqk", q, k) * s.dim**-0.5 + hidden
            weights = np.exp(scores - scores.max(-1, keepdims=True))
            o = np.einsum("hqk,khd->qhd", weights / weights.sum(-1, keepdims=True), v)
            x = self.finish(layer, x, o)
        return self.score(x)


class Pages:
    """Which pages are free, how many sequences use each, and which hold what prompts."""

    def __init__(self, shape: Shape) -> None:
        self.size, self.free = shape.page, list(range(shape.pages))[::-1]
        self.users: collections.Counter[int] = collections.Counter()
        self.known: dict[tuple[int, ...], int] = {}
        self.shared = 0

    def take(self) -> int:
        page = self.free.pop()
        self.users[page] += 1
        return page

    def share(self, prompt: list[int]) -> list[int]:
        """Pages of a prompt that are in the cache already, all but its last token's."""
        found = []
        for end in range(self.size, len(prompt), self.size):
            page = self.known.get(tuple(prompt[:end]))
            if page is None:
                break
            self.users[page] += 1
            found.append(page)
        self.shared += len(found)
        return found

    def publish(self, prompt: list[int], pages: list[int], done: int) -> None:
        """Whole pages of a prompt's first tokens can be shared from now on."""
        for index in range(done // self.size):
            self.known.setdefault(tuple(prompt[: (index + 1) * self.size]), pages[index])

    def give(self, pages: list[int]) -> None:
        for page in pages:
            self.users[page] -= 1
            if not self.users[page]:
                self.free.append(page)
                self.known = {key: each for key, each in self.known.items() if each != page}


@dataclasses.dataclass
class Request:
    prompt: list[int]
    wanted: int
    #: Prompt and answer.
    tokens: list[int] = dataclasses.field(default_factory=list)
    #: Logits of the answer's tokens.
    logits: list[float] = dataclasses.field(default_factory=list)
    pages: list[int] = dataclasses.field(default_factory=list)
    #: Tokens that have keys in the pages.
    done: int = 0

    @property
    def answer(self) -> list[int]:
        return self.tokens[len(self.prompt) :]

    def draft(self) -> list[int]:
        """A tree of guesses: what followed the last tokens where they stood before."""
        follow: dict[int, list[int]] = {}
        for token, after in zip(self.tokens, self.tokens[1:], strict=False):
            follow.setdefault(token, []).insert(0, after)
        root = self.tokens[-1]
        first, *others = follow.get(root, [0])
        second = next((each for each in others if each != first), (first + 1) % 2)
        return [root, first, second, follow.get(first, [0])[0]]


class Host:
    """numpy on the simulator."""

    def __init__(self) -> None:
        self.device = "host"

    def to(self, array):
        return array

    def run(self, _name: str, function, *inputs):
        return function(*inputs)

    def narrow(self, x):
        return x.astype(np.float16)

    def widen(self, x):
        return x.astype(np.float32)

    def attend(self, plan, q, pool):
        return plan.run(q, pool[:, 0], pool[:, 1])


class Gpu:
    """torch, with each kind of step in a CUDA graph that is captured once."""

    def __init__(self, torch) -> None:
        self.torch, self.device = torch, torch.device("cuda", 0)
        self.graphs: dict[str, tuple] = {}

    def to(self, array):
        return self.torch.from_numpy(array).to(self.device)

    def run(self, name: str, function, *inputs):
        """The step on new contents of the tensors that its graph has read."""
        if name not in self.graphs:
            kept = [self.to(each) for each in inputs]
            side = self.torch.cuda.Stream()
            side.wait_stream(self.torch.cuda.current_stream())
            with self.torch.cuda.stream(side):
                function(*kept)
            self.torch.cuda.synchronize()
            graph = self.torch.cuda.CUDAGraph()
            with self.torch.cuda.graph(graph, stream=side):
                result = function(*kept)
            self.graphs[name] = (graph, kept, result)
        graph, kept, result = self.graphs[name]
        for target, each in zip(kept, inputs, strict=True):
            target.copy_(self.torch.from_numpy(each))
        graph.replay()
        return [each.cpu().numpy() for each in result]

    def narrow(self, x):
        return x.half()

    def widen(self, x):
        return x.float()

    def attend(self, plan, q, pool):
        return plan.run(q, pool[:, 0], pool[:, 1], out=self.torch.empty_like(q))


class Server:
    """Runs requests to their ends. With `drafts` each step verifies a tree of them."""

    def __init__(self, shape: Shape, machine, drafts: bool) -> None:
        self.shape, self.machine, self.drafts = shape, machine, drafts
        self.model = Model(shape, machine.to)
        self.pages = Pages(shape)
        self.slots: list[Request | None] = [None] * shape.batch
        self.steps: collections.Counter[str] = collections.Counter()
        size = (shape.pages, 2, shape.page, shape.kv_heads, shape.dim)
        self.pools = [machine.to(np.zeros(size, np.float16)) for _ in range(shape.layers)]
        #: The lengths of a step, where the mask reads them.
        self.lengths = machine.to(np.zeros(shape.batch, np.int32))
        self.width = len(PARENTS) if drafts else 1
        self.plan = self._make_plan()

    def _make_plan(self) -> attn.DecodePlan:
        s, options = self.shape, {}
        if self.drafts:
            seen = np.eye(self.width, dtype=bool)
            for node in range(1, self.width):
                seen[node] |= seen[PARENTS[node]]
            tree, lengths, width = self.machine.to(seen), self.lengths, self.width

            def sees(b, h, q_idx, kv_idx):
                node = kv_idx - (lengths[b] - width)
                return (node < 0) | tree[q_idx, attn.mods.clip(node, 0, width - 1)]

            options = {"queries": width, "mask_mod": sees, "causal": False}
        pool_stride = 2 * s.page * s.kv_heads * s.dim
        return attn.DecodePlan(
            batch=s.batch, heads=s.heads, kv_heads=s.kv_heads, dim=s.dim, page_size=s.page,
            max_pages=s.max_pages, page_stride=pool_stride, dtype="float16",
            device=self.machine.device, **options,
        )  # fmt: skip

    def serve(self, arrivals: list[tuple[int, Request]]) -> None:
        """Requests with the step at which each arrives, in order."""
        waiting, step = collections.deque(arrivals), 0
        while waiting or any(self.slots):
            for index, slot in enumerate(self.slots):
                if slot is None and waiting and waiting[0][0] <= step and self._admit(waiting[0][1]):
                    self.slots[index] = waiting.popleft()[1]
            self._run_chunks()
            self._run_step()
            for index, slot in enumerate(self.slots):
                if slot is not None and len(slot.answer) >= slot.wanted:
                    del slot.tokens[len(slot.prompt) + slot.wanted :]
                    self.pages.give(slot.pages)
                    self.slots[index] = None
            step += 1

    def _admit(self, request: Request) -> bool:
        """Takes all pages that the request can need, or none."""
        most = len(request.prompt) + request.wanted + 2 * self.width
        needed = -(-most // self.shape.page)
        if needed > self.shape.max_pages:
            raise ValueError(f"a request of {most} tokens needs more than {self.shape.max_pages} pages")
        if needed > len(self.pages.free):
            return False
        request.tokens = list(request.prompt)
        request.pages = self.pages.share(request.prompt)
        request.done = len(request.pages) * self.shape.page
        request.pages += [self.pages.take() for _ in range(needed - len(request.pages))]
        return True

    def _make_table(self):
        table = np.full((self.shape.batch, self.shape.max_pages), -1, np.int32)
        for row, slot in zip(table, self.slots, strict=True):
            if slot is not None:
                row[: len(slot.pages)] = slot.pages
        return table

    def _run_chunks(self) -> None:
        """The next tokens of prompts, as many as a step has rows for."""
        rows, counts, lengths, ends = [], [0], np.zeros(self.shape.batch, np.int32), []
        for index, slot in enumerate(self.slots):
            if slot is not None and slot.done < len(slot.prompt):
                chunk = slot.prompt[slot.done :][: self.shape.rows - len(rows)]
                rows += [(token, slot.done + at) for at, token in enumerate(chunk)]
                slot.done += len(chunk)
                lengths[index] = slot.done
                ends.append((slot, len(rows) - 1))
            counts.append(len(rows))
        if not rows:
            return
        self.steps["chunk"] += 1
        rows += [(0, 0)] * (self.shape.rows - len(rows))
        tokens, places = (np.array(each, np.int64) for each in zip(*rows, strict=True))
        inputs = (tokens, places, lengths, self._make_table(), np.array(counts, np.int32))
        after, logits = self.machine.run("chunk", self._compute_chunks, *inputs)
        for slot, row in ends:
            self.pages.publish(slot.prompt, slot.pages, slot.done)
            if slot.done == len(slot.prompt) and not slot.answer:
                slot.tokens.append(int(after[row]))
                slot.logits.append(float(logits[row]))

    def _compute_chunks(self, tokens, places, lengths, table, counts):
        s, machine = self.shape, self.machine
        x = self.model.embed(tokens, places)
        for layer, pool in enumerate(self.pools):
            q, k, v = (machine.narrow(each) for each in self.model.project(layer, x))
            attn.append_kv(k, v, pool[:, 0], pool[:, 1], table, lengths, counts)
            o = attn.prefill(
                q, pool[:, 0], pool[:, 1], table, lengths, counts, max_seqlen_q=s.rows
            )
            # Rows of no sequence hold anything.
            row = counts[-1:] > _count(places)
            x = self.model.finish(layer, x, machine.widen(o) * row[:, None, None])
        return self.model.choose(x)

    def _run_step(self) -> None:
        """One step of all sequences whose prompt is in the cache."""
        ready = [each if each and each.answer else None for each in self.slots]
        ready = [each if each and len(each.answer) < each.wanted else None for each in ready]
        if not any(ready):
            return
        self.steps["step"] += 1
        width = self.width
        tokens = np.zeros((len(ready), width), np.int64)
        places = np.zeros((len(ready), width), np.int64)
        lengths = np.zeros(len(ready), np.int32)
        for index, slot in enumerate(ready):
            if slot is not None:
                tokens[index] = slot.draft()[:width]
                places[index] = slot.done + np.array(DEPTHS[:width])
                lengths[index] = slot.done + width
        counts = np.concatenate([[0], np.cumsum(lengths > 0) * width]).astype(np.int32)
        # Drafts of sequences that rest have no rows of their own to append.
        order = np.argsort(lengths == 0, kind="stable")
        rows = np.arange(len(ready) * width).reshape(len(ready), width)[order].reshape(-1)
        inputs = (tokens.reshape(-1), places.reshape(-1), rows, lengths, self._make_table(), counts)
        results = self.machine.run("step", self._compute_step, *inputs)
        after, logits = (each.reshape(len(ready), width).tolist() for each in results)
        for slot, *rows in zip(ready, tokens.tolist(), after, logits, strict=True):
            if slot is not None:
                self._accept(slot, *rows)

    def _compute_step(self, tokens, places, rows, lengths, table, counts):
        s, machine, width = self.shape, self.machine, self.width
        self.lengths[...] = lengths
        self.plan.plan(lengths, table)
        x = self.model.embed(tokens, places)
        for layer, pool in enumerate(self.pools):
            q, k, v = (machine.narrow(each) for each in self.model.project(layer, x))
            attn.append_kv(k[rows], v[rows], pool[:, 0], pool[:, 1], table, lengths, counts)
            if width > 1:
                q = q.reshape(s.batch, width, s.heads, s.dim).swapaxes(1, 2)
                q = q.copy() if machine.device == "host" else q.contiguous()
            else:
                q = q.reshape(s.batch, s.heads, s.dim)
            o = machine.attend(self.plan, q, pool)
            o = o.swapaxes(1, 2) if width > 1 else o
            x = self.model.finish(layer, x, machine.widen(o))
        return self.model.choose(x)

    def _accept(
        self, slot: Request, drafts: list[int], after: list[int], logits: list[float]
    ) -> None:
        """The longest path of drafts that the model would have chosen, and what it chooses
        behind it; keys of the path move to where they belong."""
        path = [0]
        while True:
            at = path[-1]
            children = [n for n in range(1, self.width) if PARENTS[n] == at]
            right = [n for n in children if drafts[n] == after[at]]
            if not right:
                break
            path.append(right[0])
        for depth, node in enumerate(path):
            if depth != node:
                self._move(slot, slot.done + node, slot.done + depth)
        slot.tokens += [after[node] for node in path]
        slot.logits += [logits[node] for node in path]
        slot.done += len(path)
        self.steps["tokens"] += len(path)
        self.steps["drafts right"] += len(path) - 1

    def _move(self, slot: Request, source: int, target: int) -> None:
        size = self.shape.page
        for pool in self.pools:
            pool[slot.pages[target // size], :, target % size] = pool[
                slot.pages[source // size], :, source % size
            ]


def _count(x):
    """0, 1, 2 ... for the entries of x, in numpy or torch."""
    return (x * 0 + 1).cumsum(0) - 1


def make_requests(shape: Shape, count: int, seed: int = 3) -> list[tuple[int, Request]]:
    """Prompts of which some begin alike, arriving while others are served."""
    rng = np.random.default_rng(seed)
    room = shape.page * shape.max_pages
    common = rng.integers(0, shape.vocabulary, room // 3 + 5).tolist()
    arrivals = []
    for number in range(count):
        front = common[: int(rng.integers(shape.page, len(common)))] if number % 2 else []
        back = rng.integers(0, shape.vocabulary, int(rng.integers(1, room // 4))).tolist()
        wanted = int(rng.integers(3, room // 8))
        arrivals.append((number, Request(front + back, wanted)))
    return arrivals


def compare(shape: Shape, requests: list[Request]) -> tuple[int, float]:
    """How many tokens a dense run of the model would not have chosen, since two were within
    rounding, and the largest difference of a logit, of these from the best one, too."""
    model = Model(shape, lambda array: array.astype(np.float64))
    others, worst = 0, 0.0
    for request in requests:
        logits = model.run_dense(request.tokens[:-1])[len(request.prompt) - 1 :]
        chosen = logits[np.arange(len(logits)), request.answer]
        behind = logits.max(-1) - chosen
        others += int((behind > 0).sum())
        worst = max(worst, behind.max(), np.abs(chosen - request.logits[: len(chosen)]).max())
    return others, float(worst)


def run(shape: Shape, machine, count: int, drafts: bool) -> bool:
    arrivals = make_requests(shape, count)
    server = Server(shape, machine, drafts)
    start = time.perf_counter()
    server.serve(arrivals)
    seconds = time.perf_counter() - start
    requests = [each for _, each in arrivals]
    others, worst = compare(shape, requests)
    answers = sum(len(each.answer) for each in requests)
    shown = ", ".join(f"{number} {name}" for name, number in sorted(server.steps.items()))
    print(
        f"{'drafts' if drafts else 'plain '}: {count} requests, {answers} tokens, {shown}, "
        f"{server.pages.shared} pages shared, {seconds:.2f} s; {others} tokens are not those of the dense run, logits differ by {worst:.1e}"
    )
    if len(server.pages.free) != shape.pages:
        print(f"{shape.pages - len(server.pages.free)} pages were not given back")
        return False
    return worst < TOLERANCE


#: Largest difference of a logit from float64's. A draft that sees another one's key makes 0.1.
TOLERANCE = 0.02
#: What a GPU serves.
LARGE = Shape(
    heads=8, kv_heads=2, dim=128, vocabulary=512, max_pages=32, pages=700, batch=32, rows=256
)  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--torch", action="store_true", help="a GPU instead of the simulator")
    parser.add_argument("--requests", type=int, help="how many (default: 7, with --torch 100)")
    options = parser.parse_args()
    if options.torch:
        import torch

        torch.backends.cuda.matmul.allow_tf32 = False
        shape, count = LARGE, options.requests or 100
        good = [run(shape, Gpu(torch), count, drafts) for drafts in (False, True)]
    else:
        shape, count = Shape(), options.requests or 7
        good = [run(shape, Host(), count, drafts) for drafts in (False, True)]
    return int(not all(good))


if __name__ == "__main__":
    sys.exit(main())
