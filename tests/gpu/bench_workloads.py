#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Bench workloads -- programs of the frameworks that allocate a lot, one a process

    bench_workloads.py NAME

scripts/gpu-bench starts one process for each allocator, and lets one of them run
at a time. A process does what it reads from its input, line by line, and answers
with one line of JSON; before `build` it has imported everything and not touched
the device:

    build N    the model, and N steps, so that nothing is done for the first time: {}
    run N      a few steps that do not count, then N that do: {"seconds": s}
    check N    all from the start, N steps, deterministic: {"checksum": text}

The steps of a workload are numbered and the same for every allocator. Nothing here
knows of streampool.
"""

import ctypes
import gc
import hashlib
import json
import os
import random
import sys
import time

# torch: each builder returns step(i), which returns something that float() takes.


def mlp(torch, dev):
    nn = torch.nn
    blocks = [nn.Sequential(nn.Linear(512, 512), nn.ReLU()) for _ in range(8)]
    return trained(torch, nn.Sequential(*blocks).to(dev), 0.01, lambda model, _:
                   model(torch.randn(256, 512, device=dev)).square().mean())


def trained(torch, model, rate, loss_of, **options):
    """A step of training with plain gradient descent."""
    optimizer = torch.optim.SGD(model.parameters(), rate, **options)

    def step(i):
        loss = loss_of(model, i)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return loss

    return step


def resnet50(torch, dev):
    import torchvision

    images = torch.randn(64, 3, 224, 224, device=dev)
    labels = torch.randint(0, 1000, (64,), device=dev)

    def loss_of(model, _):
        with torch.autocast("cuda", torch.bfloat16):
            return torch.nn.functional.cross_entropy(model(images), labels)

    return trained(torch, torchvision.models.resnet50().to(dev), 0.01, loss_of, momentum=0.9)


def gpt2(torch, dev):
    """Another length of text in every step, and as many texts as make 8192 tokens."""
    from transformers import GPT2Config, GPT2LMHeadModel

    with torch.device(dev):  # its weights are drawn there, which takes no time
        model = GPT2LMHeadModel(GPT2Config(n_layer=12))
    optimizer = torch.optim.AdamW(model.parameters(), 1e-4)

    def step(i):
        length = random.Random(i).randrange(64, 1024)
        tokens = torch.randint(0, 50257, (max(1, 8192 // length), length), device=dev)
        with torch.autocast("cuda", torch.bfloat16):
            loss = model(tokens, labels=tokens).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return loss

    return step


def generate(torch, dev):
    """A language model answers: the memory for what it has read grows with every word."""
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        hidden_size=1024, intermediate_size=2816, num_hidden_layers=16, vocab_size=32000,
        num_attention_heads=16, num_key_value_heads=8,
    )  # fmt: skip
    torch.set_default_dtype(torch.bfloat16)
    with torch.device(dev):
        model = LlamaForCausalLM(config).eval()
    torch.set_default_dtype(torch.float32)

    def step(i):
        chance = random.Random(i)
        texts, length = chance.randrange(1, 16), chance.randrange(16, 512)
        prompt = torch.randint(0, 32000, (texts, length), device=dev)
        with torch.no_grad():
            return model.generate(
                prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=12,
                do_sample=False, pad_token_id=0,
            ).float().sum()  # fmt: skip

    return step


def rcnn(torch, dev):
    """Images of all sizes, and some boxes in each."""
    import torchvision

    model = torchvision.models.detection.fasterrcnn_resnet50_fpn(
        weights=None, weights_backbone=None, num_classes=91
    )

    def loss_of(model, i):
        chance, images, targets = random.Random(i), [], []
        for _ in range(2):
            height, width = chance.randrange(300, 800), chance.randrange(300, 800)
            images.append(torch.rand(3, height, width, device=dev))
            count = chance.randrange(1, 20)
            corner = torch.rand(count, 2, device=dev) * 150
            other = corner + 20 + torch.rand(count, 2, device=dev) * 100
            labels = torch.randint(1, 91, (count,), device=dev)
            targets.append({"boxes": torch.cat([corner, other], 1), "labels": labels})
        return sum(model(images, targets).values())

    # Its backward pass adds up in no particular order; a model that does not learn hides that.
    rate = 0.0 if torch.backends.cudnn.deterministic else 1e-4
    return trained(torch, model.to(dev).train(), rate, loss_of)


def gnn(torch, dev):
    """A graph of another size in every step."""
    from torch_geometric.nn import GCNConv

    first, second = GCNConv(128, 256).to(dev), GCNConv(256, 16).to(dev)
    optimizer = torch.optim.Adam([*first.parameters(), *second.parameters()])

    def step(i):
        nodes = random.Random(i).randrange(1000, 60000)
        edges = torch.randint(0, nodes, (2, nodes * 8), device=dev)
        x = torch.relu(first(torch.randn(nodes, 128, device=dev), edges))
        loss = second(x, edges).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return loss

    return step


def streams(torch, dev):
    """Four streams, each with memory of its own that the first stream uses in the end."""
    side = [torch.cuda.Stream() for _ in range(4)]

    def step(i):
        chance, outputs = random.Random(i), []
        for stream in side:
            with torch.cuda.stream(stream):
                a = torch.randn(chance.randrange(64, 1500), 1024, device=dev)
                b = (a @ a.T).relu()
                outputs.append(b.sum())
                b.record_stream(torch.cuda.current_stream())
        for stream, output in zip(side, outputs):
            torch.cuda.current_stream().wait_stream(stream)
            output.record_stream(torch.cuda.current_stream())
        return torch.stack(outputs).sum()

    return step


TORCH = {
    "mlp": (mlp, ()),
    "resnet50": (resnet50, ("torchvision",)),
    "gpt2": (gpt2, ("transformers",)),
    "generate": (generate, ("transformers",)),
    "rcnn": (rcnn, ("torchvision",)),
    "gnn": (gnn, ("torch_geometric.nn",)),
    "streams": (streams, ()),
}


class Torch:
    def __init__(self, name):
        self.builder, modules = TORCH[name]
        self.torch = __import__("torch")
        for module in modules:
            __import__(module)
        if "transformers" in modules:  # it imports a model when that is named
            from transformers import GPT2LMHeadModel, LlamaForCausalLM  # noqa: F401

    def build(self):
        self.torch.manual_seed(0)
        return self.builder(self.torch, "cuda")

    def wait(self):
        self.torch.cuda.synchronize()

    def fix(self):
        """From here on sums are added up in one order, where PyTorch knows how."""
        torch = self.torch
        torch.backends.cudnn.deterministic = True
        torch.backends.cuda.enable_flash_sdp(False)
        torch.backends.cuda.enable_mem_efficient_sdp(False)
        torch.backends.cuda.enable_cudnn_sdp(False)
        # For rcnn that would mean other kernels, compiled for minutes.
        if self.builder is not rcnn:
            torch.utils.deterministic.fill_uninitialized_memory = False
            torch.use_deterministic_algorithms(True, warn_only=True)


class Cupy:
    def __init__(self, _name):
        self.cupy = __import__("cupy")

    def build(self):
        cupy, kind = self.cupy, os.environ.get("CUPY_POOL", "default")
        if kind == "none":
            cupy.cuda.set_allocator(None)
        elif kind == "async":
            cupy.cuda.set_allocator(cupy.cuda.MemoryAsyncPool().malloc)

        def step(i):
            a = cupy.arange(random.Random(i).randrange(1000, 2000000), dtype=cupy.float32)
            b = cupy.sin(a) * 2 + cupy.sqrt(a)
            c = cupy.sort(b)[::2]
            return c.sum() + (a[:100] @ b[:100])

        return step

    def wait(self):
        self.cupy.cuda.Device().synchronize()

    def fix(self):
        pass


class Jax:
    def __init__(self, _name):
        self.jax = __import__("jax")
        self.numpy = __import__("jax.numpy").numpy

    def build(self):
        jnp = self.numpy
        gradient = self.jax.jit(self.jax.grad(lambda w, x: jnp.tanh(x @ w).sum()))
        weights = jnp.ones((1024, 1024))

        def step(i):
            x = jnp.ones((256 * (1 + i % 4), 1024)) * 2
            return gradient(weights, jnp.sin(x) + x).sum()

        return step

    def wait(self):
        self.jax.block_until_ready(self.numpy.zeros(1))

    def fix(self):
        pass


class Driver:
    """cuMemAlloc, a set, a copy back, cuMemFree: runs where there is a driver, any driver."""

    def __init__(self, _name):
        self.driver = ctypes.CDLL("libcuda.so.1")

    def ok(self, result):
        if result:
            raise RuntimeError(f"the driver answered {result}")

    def build(self):
        device, context = ctypes.c_int(), ctypes.c_void_p()
        self.ok(self.driver.cuInit(0))
        self.ok(self.driver.cuDeviceGet(ctypes.byref(device), 0))
        self.ok(self.driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), device))
        self.ok(self.driver.cuCtxSetCurrent(context))

        def step(i):
            count = random.Random(i).randrange(1000, 200000)
            block, last = ctypes.c_uint64(), ctypes.c_uint32()
            words = ctypes.c_size_t(count)
            self.ok(self.driver.cuMemAlloc_v2(ctypes.byref(block), ctypes.c_size_t(count * 4)))
            self.ok(self.driver.cuMemsetD32_v2(block, ctypes.c_uint(i), words))
            self.ok(self.driver.cuMemcpyDtoH_v2(ctypes.byref(last), block, ctypes.c_size_t(4)))
            self.ok(self.driver.cuMemFree_v2(block))
            return last.value + count

        return step

    def wait(self):
        self.ok(self.driver.cuCtxSynchronize())

    def fix(self):
        pass


KINDS = {**dict.fromkeys(TORCH, Torch), "cupy": Cupy, "jax": Jax, "driver": Driver}


class Program:
    def __init__(self, name):
        self.kind = KINDS[name](name)
        self.step = None
        self.next = 0

    def steps(self, count):
        """The next @count steps; what the last one returned."""
        last = None
        for i in range(count):
            last = self.step(self.next)
            self.next += 1
            if i % 16 == 15:
                self.kind.wait()  # nobody lets the host run ahead without an end
        float(last)
        self.kind.wait()

    def build(self, warm):
        self.step = self.kind.build()
        self.steps(warm)
        return {}

    def run(self, count):
        self.steps(max(1, count // 10))
        start = time.perf_counter()
        self.steps(count)
        return {"seconds": time.perf_counter() - start}

    def check(self, count):
        self.step = None
        gc.collect()
        self.kind.fix()
        self.step = self.kind.build()
        values = repr([float(self.step(i)) for i in range(count)])
        return {"checksum": hashlib.sha256(values.encode()).hexdigest()[:16]}


def main():
    # What libraries print belongs to nobody who reads our answers.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def answer(line):
        answers.write(json.dumps(line) + "\n")
        answers.flush()

    try:
        program = Program(sys.argv[1])
    except ImportError as error:
        answer({"missing": str(error)})
        return 77
    answer({})
    for line in sys.stdin:
        verb, number = line.split()
        answer({"build": program.build, "run": program.run, "check": program.check}[verb](int(number)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
