"""Small ONNX files, written field by field: seeds of the fuzz target and strange files of tests."""
import struct


def varint(n):
    n &= (1 << 64) - 1
    out = b""
    while n > 127:
        out += bytes([n & 127 | 128])
        n >>= 7
    return out + bytes([n])


def number(field, n):
    return varint(field << 3) + varint(n)


def part(field, data):
    data = data.encode() if isinstance(data, str) else data
    return varint(field << 3 | 2) + varint(len(data)) + data


def tensor(name, dims, kind=1, integers=None, raw=None):
    out = b"".join(number(1, d) for d in dims) + number(2, kind) + part(8, name)
    if integers is not None:
        out += b"".join(number(7, v) for v in integers)
    if raw is not None:
        out += part(9, raw)
    return out


def weight(name, dims):
    n = 4
    for d in dims:
        n *= d
    return tensor(name, dims, 1, raw=b"\0" * n)


def attribute(name, value):
    out = part(1, name)
    if isinstance(value, float):
        return out + varint(2 << 3 | 5) + struct.pack("<f", value)
    if isinstance(value, int):
        return out + number(3, value)
    if isinstance(value, str):
        return out + part(4, value)
    if isinstance(value, list):
        return out + b"".join(number(8, v) for v in value)
    kind, data = value  # ("graph", bytes) or ("tensor", bytes)
    return out + part(6 if kind == "graph" else 5, data)


def node(op, inputs, outputs, domain="", **attributes):
    out = b"".join(part(1, i) for i in inputs) + b"".join(part(2, o) for o in outputs)
    out += part(4, op)
    if domain:
        out += part(7, domain)
    return out + b"".join(part(5, attribute(k, v)) for k, v in attributes.items())


def value(name, dims, kind=1):
    shape = b""
    for d in dims:
        dimension = number(1, d) if isinstance(d, int) else part(2, d) if d else b""
        shape += part(1, dimension)
    return part(1, name) + part(2, part(1, number(1, kind) + part(2, shape)))


def graph(nodes, inputs, outputs, tensors=(), name="g"):
    return (b"".join(part(1, n) for n in nodes) + part(2, name)
            + b"".join(part(5, t) for t in tensors) + b"".join(part(11, i) for i in inputs)
            + b"".join(part(12, o) for o in outputs))


def model(body, opset=17, functions=(), domains=("com.microsoft", "ai.onnx.ml", "local")):
    out = number(1, 8) + part(2, "seeds") + part(7, body) + part(8, part(1, "") + number(2, opset))
    for d in domains:
        out += part(8, part(1, d) + number(2, 1))
    return out + b"".join(part(25, f) for f in functions)


def function(name, nodes, inputs, outputs, domain="local"):
    return (part(1, name) + b"".join(part(4, i) for i in inputs)
            + b"".join(part(5, o) for o in outputs) + b"".join(part(7, n) for n in nodes)
            + part(9, part(1, "") + number(2, 17)) + part(10, domain))


def conv_net():
    """conv 3x3, batch norm, relu, pool, flatten, gemm: an image classifier in small."""
    return model(graph(
        [node("Conv", ["x", "w", "b"], ["c"], pads=[1, 1, 1, 1], strides=[2, 2]),
         node("BatchNormalization", ["c", "s", "t", "m", "v"], ["n"]),
         node("Relu", ["n"], ["r"]), node("GlobalAveragePool", ["r"], ["p"]),
         node("Flatten", ["p"], ["f"]), node("Gemm", ["f", "g", "h"], ["y"], transB=1),
         node("Softmax", ["y"], ["z"])],
        [value("x", ["batch", 3, "height", "width"])], [value("z", ["batch", 10])],
        [weight("w", [8, 3, 3, 3]), weight("b", [8])] + [weight(n, [8]) for n in "stmv"]
        + [weight("g", [10, 8]), weight("h", [10])]))


def attention_net():
    """Embedding, attention written out with shape arithmetic, layer norm."""
    return model(graph(
        [node("Gather", ["e", "ids"], ["x"]), node("Shape", ["x"], ["sh"]),
         node("Gather", ["sh", "one"], ["len"]),
         node("Unsqueeze", ["len", "zero1"], ["len1"]),
         node("Concat", ["m1", "len1", "heads"], ["to"], axis=0),
         node("MatMul", ["x", "wq"], ["q0"]), node("Reshape", ["q0", "to"], ["q1"]),
         node("Transpose", ["q1"], ["q"], perm=[0, 2, 1, 3]),
         node("Transpose", ["q1"], ["k"], perm=[0, 2, 3, 1]),
         node("MatMul", ["q", "k"], ["s"]), node("Softmax", ["s"], ["p"], axis=-1),
         node("MatMul", ["p", "q"], ["o"]),
         node("LayerNormalization", ["o", "g"], ["y"], axis=-1)],
        [value("ids", ["batch", "sequence"], 7)], [value("y", [])],
        [weight("e", [20, 16]), weight("wq", [16, 16]), weight("g", [4]),
         tensor("one", [], 7, [1]), tensor("zero1", [1], 7, [0]), tensor("m1", [1], 7, [-1]),
         tensor("heads", [2], 7, [4, 4])]))


def loop_net():
    body = graph([node("Identity", ["c"], ["c2"]), node("Mul", ["a", "a"], ["a2"]),
                  node("Relu", ["a2"], ["each"])],
                 [value("i", [], 7), value("c", [], 9), value("a", [1, 4])],
                 [value("c2", [], 9), value("a2", [1, 4]), value("each", [1, 4])])
    then, other = (graph([node(op, ["y"], [out])], [], [value(out, [1, 4])])
                   for op, out in (("Relu", "t"), ("Exp", "u")))
    return model(graph(
        [node("Loop", ["n", "", "x"], ["y", "all"], body=("graph", body)),
         node("If", ["flag"], ["z"], then_branch=("graph", then), else_branch=("graph", other)),
         node("Twice", ["z"], ["w"], domain="local")],
        [value("x", [1, 4]), value("flag", [], 9)], [value("w", []), value("all", [])],
        [tensor("n", [], 7, [5])]),
        functions=[function("Twice", [node("Add", ["a", "a"], ["b"])], ["a"], ["b"])])


def many_operators():
    """Operators whose shapes need care, side by side."""
    ops = [node("Slice", ["x", "i0", "i3", "i1"], ["a1"]), node("Pad", ["x", "i8"], ["a2"]),
           node("Resize", ["x", "", "sc"], ["a3"]), node("Tile", ["x", "i4"], ["a4"]),
           node("Split", ["x"], ["a5", "a6"], axis=2), node("TopK", ["x", "i1"], ["a7", "a8"]),
           node("ConvTranspose", ["x", "w"], ["a9"], strides=[2, 2]),
           node("MaxPool", ["x"], ["b1"], kernel_shape=[2, 2], ceil_mode=1),
           node("LSTM", ["s", "lw", "lr"], ["b2", "b3"], hidden_size=4),
           node("Einsum", ["s", "s"], ["b4"], equation="abc,abd->cd"),
           node("MatMulNBits", ["s", "nb", "ns"], ["b5"], domain="com.microsoft", K=8, N=4, bits=4,
                block_size=16),
           node("DynamicQuantizeLinear", ["x"], ["b6", "b7", "b8"]),
           node("NonZero", ["x"], ["b9"]), node("DepthToSpace", ["x"], ["c1"], blocksize=2),
           node("SplitToSequence", ["s"], ["c2"], axis=0), node("ConcatFromSequence", ["c2"],
                                                                 ["c3"], axis=0),
           node("Scan", ["s"], ["c4"], num_scan_inputs=1, body=("graph", graph(
               [node("Relu", ["e"], ["f"])], [value("e", [2, 8])], [value("f", [2, 8])]))),
           node("Range", ["k0", "k9", "k1"], ["c5"]), node("Expand", ["k0", "i4"], ["c6"]),
           node("ReduceMean", ["x"], ["c7"], axes=[2, 3], keepdims=0)]
    outs = ["a1", "a2", "a3", "a4", "a5", "a6", "a7", "a8", "a9", "b1", "b2", "b3", "b4", "b5",
            "b6", "b9", "c1", "c3", "c4", "c5", "c6", "c7"]
    return model(graph(
        ops, [value("x", [1, 4, 6, 6]), value("s", [3, 2, 8])], [value(o, []) for o in outs],
        [tensor("i0", [1], 7, [0]), tensor("i3", [1], 7, [3]), tensor("i1", [1], 7, [1]),
         tensor("i8", [8], 7, [0, 0, 1, 1, 0, 0, 1, 1]), tensor("i4", [4], 7, [1, 2, 1, 1]),
         tensor("sc", [4], 1, raw=struct.pack("<4f", 1, 1, 2, 2)), weight("w", [4, 2, 3, 3]),
         weight("lw", [1, 16, 8]), weight("lr", [1, 16, 4]), tensor("nb", [4, 1, 8], 2,
                                                                     raw=b"\0" * 32),
         weight("ns", [4]), tensor("k0", [], 7, [0]), tensor("k9", [], 7, [9]),
         tensor("k1", [], 7, [1])]))


SEEDS = {"conv": conv_net, "attention": attention_net, "loop": loop_net,
         "operators": many_operators}
