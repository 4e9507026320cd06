/* graph.h -- graphs made from graphs; a chapter beside quern.h. Problem lines are in docs/problem-lines.md. */
#ifndef QUERN_GRAPH_H
#define QUERN_GRAPH_H
#include <quern/quern.h>
#ifdef __cplusplus
extern "C" {
#endif

/* The graph with its backward half appended: a copy of `graph` whose outputs are graph's and then, in the order of wrt, d<name> for each of
 * the n names in wrt, the gradient of the loss by the value of that name.
 *
 * loss, wrt: names of values; of a graph of one op the names of its roles (of a list's tensors params0, params1, ...). A value without a
 * name is called what qn_graph_print calls it. Any value may stand in wrt: an input, or one that an op makes.
 * loss [one element]   d<name> [dims of name], of its dtype and alignment, in its strides if it is packed in some dim order, else packed
 * For a loss of more elements, or a gradient dy that comes from elsewhere, let the graph end in
 *   p = mul a=y b=dy | loss = reduce_sum x=p
 *
 * Each op's gradient is lines of other ops (core/language/gradients.def says which). Gradients by a value that several ops read are added,
 * and summed over the dims in which it was broadcast. An optional output that a backward op needs of the forward half (lse, statistics,
 * indices, gates) is added to its forward line. What does not lie between wrt and the loss gets no lines. The result is a graph like any
 * other: print it, append an optimiser's lines to its text, differentiate it again where the ops allow (with d<name> renamed there).
 * At kinks the gradient is that of the backward ops (ops.h): relu'(0) = 0. Of min and max an equal pair gives it to a, reduce_max and its
 * like share it among equals. The ops whose gradient is 0 almost everywhere (sign, floor, comparisons, ...) pass none on; if no other path
 * leads to the loss, d<name> is 0.
 *
 * QN_BAD_ARGUMENT: a name is none of the graph's, or is there twice; loss or wrt are no floats, loss has more elements; the loss does not
 * depend on a wrt at all; a value is called d<name> already. QN_UNSUPPORTED: an op between has no gradient (argmax, quantize, ...); the
 * sentence names it and the value. *graph_p: destroy it with qn_graph_destroy. `graph` stays as it is. */
qn_status qn_graph_gradient(const qn_graph *graph, const char *loss, const char *const wrt[], int n, qn_graph **graph_p);

#ifdef __cplusplus
}
#endif
#endif
