"""torch_quern.py -- Quern by its C interface, on tensors of PyTorch."""
import ctypes
import torch


class Role(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("class_", ctypes.c_char), ("flags", ctypes.c_uint32), ("paired", ctypes.c_int32),
                ("holds", ctypes.c_uint8), ("from_", ctypes.c_uint8), ("of", ctypes.c_int8), ("dim", ctypes.c_int8)]


class Op(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_uint64), ("name", ctypes.c_char_p), ("kind", ctypes.c_uint32), ("family", ctypes.c_uint32),
                ("forward", ctypes.c_uint32), ("role_info_size", ctypes.c_uint32), ("attr_info_size", ctypes.c_uint32),
                ("n_roles", ctypes.c_uint32), ("n_inputs", ctypes.c_uint32), ("roles", ctypes.c_void_p)]

    def role(self, i):
        return Role.from_address(self.roles + i * self.role_info_size)


class Value(ctypes.Structure):
    _fields_ = [("dtype", ctypes.c_uint32), ("rank", ctypes.c_int32), ("dim", ctypes.c_int64 * 8), ("stride", ctypes.c_int64 * 8),
                ("align", ctypes.c_uint32), ("flags", ctypes.c_uint32), ("producer", ctypes.c_int32), ("last_user", ctypes.c_int32),
                ("over", ctypes.c_int32), ("scalar", ctypes.c_uint32)]


class Node(ctypes.Structure):
    _fields_ = [("op", ctypes.c_uint32), ("family", ctypes.c_uint32), ("attr", ctypes.c_void_p), ("n_roles", ctypes.c_uint32),
                ("n_inputs", ctypes.c_uint32), ("first", ctypes.POINTER(ctypes.c_int32)), ("arg", ctypes.POINTER(ctypes.c_int32))]


class View(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_uint64), ("n_ops", ctypes.c_uint32), ("n_values", ctypes.c_uint32),
                ("n_pointers", ctypes.c_uint32), ("n_ins", ctypes.c_uint32), ("op", ctypes.POINTER(Node)),
                ("value", ctypes.POINTER(Value)), ("name", ctypes.c_void_p), ("literal", ctypes.POINTER(ctypes.c_double)),
                ("pointer", ctypes.POINTER(ctypes.c_int32))]


DTYPE = {"f32": torch.float32, "f64": torch.float64, "bf16": torch.bfloat16, "f16": torch.float16, "bool": torch.bool,
         "i8": torch.int8, "u8": torch.uint8, "i32": torch.int32, "i64": torch.int64, "e4m3": torch.float8_e4m3fn,
         "e5m2": torch.float8_e5m2}


class Quern:
    def __init__(self, path, threads):
        self.lib = lib = ctypes.CDLL(path)
        lib.qn_last_error.restype = lib.qn_dtype_name.restype = lib.qn_family_name.restype = ctypes.c_char_p
        lib.qn_plan_print.restype = ctypes.c_size_t
        lib.qn_graph_inspect.restype = ctypes.POINTER(View)
        lib.qn_op_find.restype = ctypes.POINTER(Op)
        self.ctx = ctypes.c_void_p()
        options = (ctypes.c_char_p * 2)(b"threads=%d" % threads, None)
        self.check(lib.qn_context_create(options, ctypes.byref(self.ctx)))

    def check(self, status):
        if status:
            raise RuntimeError(self.lib.qn_last_error().decode())

    def plan(self, line):
        graph, plan = ctypes.c_void_p(), ctypes.c_void_p()
        self.check(self.lib.qn_graph_parse(line.encode(), ctypes.byref(graph)))
        try:
            self.check(self.lib.qn_plan_create(self.ctx, graph, ctypes.byref(plan)))
        finally:
            self.lib.qn_graph_destroy(graph)
        name = ctypes.create_string_buffer(4096)
        self.lib.qn_plan_print(plan, name, ctypes.c_size_t(4096))
        parts = self.lib.qn_plan_parts(plan)
        return plan, name.value.decode().split(" ")[0] if parts == 1 else f"{parts} parts"

    def inspect(self, line):
        graph = ctypes.c_void_p()
        self.check(self.lib.qn_graph_parse(line.encode(), ctypes.byref(graph)))
        return self.lib.qn_graph_inspect(graph).contents

    def tensor(self, value):
        dtype = DTYPE[self.lib.qn_dtype_name(ctypes.c_uint32(value.dtype)).decode()]
        return torch.empty_strided(value.dim[:value.rank], value.stride[:value.rank], dtype=dtype)

    def steps(self, line):
        """Of a graph: each op's name, family, attributes as words, and by role, of what it reads and of what it writes, whether it is a
        list and the numbers of its values."""
        view = self.inspect(line)
        texts = [part.split(" = ")[1].split()[1:] for part in line.split(" | ") if " = " in part]
        for k, a in enumerate(dict(w.split("=", 1) for w in words) for words in texts):
            node, op = view.op[k], self.lib.qn_op_find(view.op[k].op).contents
            sides = [{op.role(r).name.decode(): (op.role(r).flags & 2, node.arg[node.first[r]:node.first[r + 1]]) for r in roles
                      if node.first[r] < node.first[r + 1]} for roles in (range(op.n_inputs), range(op.n_inputs, op.n_roles))]
            yield op.name.decode(), self.lib.qn_family_name(ctypes.c_uint32(op.family)).decode(), a, *sides

    def problem(self, line):
        """The op's name, its family, and a function that makes tensors: by role (of a list role a list), in execute's order, and the
        first output. Of a graph: "graph" twice, and what torch_problems.network takes."""
        if " | " in line:
            return "graph", "graph", (self, line)
        view = self.inspect(line)
        node, op = view.op[0], self.lib.qn_op_find(view.op[0].op).contents

        def tensors():
            made, roles = {}, {}
            for k in range(view.n_values):
                v = view.value[k]
                if v.flags & 1:                                     # a literal of the line
                    made[k] = view.literal[k]
                elif v.over >= 0:
                    made[k] = made[v.over]
                else:
                    made[k] = self.tensor(v)
            for r in range(op.n_roles):
                items = [made[node.arg[i]] for i in range(node.first[r], node.first[r + 1])]
                if items:
                    roles[op.role(r).name.decode()] = items if op.role(r).flags & 2 else items[0]
            return roles, [made[view.pointer[i]] for i in range(view.n_pointers)], roles.get(op.role(op.n_inputs).name.decode())

        return op.name.decode(), self.lib.qn_family_name(ctypes.c_uint32(op.family)).decode(), tensors

    def record(self, plan, sets):
        """A recording of one execution on each set of tensors."""
        pointers = [(ctypes.c_void_p * len(s))(*[t.data_ptr() for t in s]) for s in sets]
        for p in pointers:
            self.check(self.lib.qn_plan_execute(self.ctx, plan, p))
        recording = ctypes.c_void_p()
        self.check(self.lib.qn_record_begin(self.ctx))
        for p in pointers:
            self.check(self.lib.qn_plan_execute(self.ctx, plan, p))
        self.check(self.lib.qn_record_end(self.ctx, ctypes.byref(recording)))
        return recording

    def replay(self, recording):
        self.check(self.lib.qn_recording_replay(self.ctx, recording))
