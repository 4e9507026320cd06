/* rnn.h -- weights of recurrent networks from other libraries' layouts to qn_rnn_forward's, and back. Not part of quern.h; works on host
 * memory, allocates nothing, calls nothing.
 *
 * A matrix [G H, columns] has its gates' rows one after another. The order of gates, and what else differs:
 *
 *   layout             lstm       gru      matrices        biases
 *   here               i f g o    r z n    [G H, columns]  bw [G H], br [G H]
 *   QN_RNN_TORCH       the same   the same the same        the same (weight_ih_l0, weight_hh_l0, bias_ih_l0, bias_hh_l0); also cuDNN's
 *   QN_RNN_ONNX        i o f g    z r n    [G H, columns]  B [2 G H]: bw, then br, both in ONNX's order
 *   QN_RNN_KERAS       i f g o    z r n    [columns, G H]  lstm [G H]: bw alone; gru [2, G H]: bw, then br (reset_after=False: bw alone)
 *
 * ONNX's GRU with linear_before_reset=0 (its default) and Keras's with reset_after=False are reset=before. In all of these
 * h' = (1 - z) n + z h. ONNX's W, R and B have a first dim for the direction: convert one direction's part at a time. Not covered, for
 * there is nothing here that they would become: ONNX's peepholes (P), input_forget, clip and other activations. */
#ifndef QUERN_RNN_H
#define QUERN_RNN_H
#include <string.h>
#include <quern/quern.h>
#ifdef __cplusplus
extern "C" {
#endif

enum { QN_RNN_TORCH = 0, QN_RNN_ONNX = 1, QN_RNN_KERAS = 2 };

static inline int64_t qn_rnn_gates(int64_t cell) { return cell == QN_RNN_LSTM ? 4 : cell == QN_RNN_GRU ? 3 : 1; }

/* Where the layout has our gate g. */
static inline int64_t qn_rnn_gate_place(int layout, int64_t cell, int64_t g)
{
  static const int8_t onnx_lstm[4] = { 0, 2, 3, 1 }, zrn[3] = { 1, 0, 2 };
  if (cell == QN_RNN_LSTM && layout == QN_RNN_ONNX) return onnx_lstm[g];
  if (cell == QN_RNN_GRU && layout != QN_RNN_TORCH) return zrn[g];
  return g;
}

/* Offset in elements, within the layout's matrix, of row `row` (of unit row % hidden) and column `column` of ours. */
static inline int64_t qn_rnn_place(int layout, int64_t cell, int64_t hidden, int64_t columns, int64_t row, int64_t column)
{
  const int64_t theirs = qn_rnn_gate_place(layout, cell, row / hidden) * hidden + row % hidden;
  return layout == QN_RNN_KERAS ? column * qn_rnn_gates(cell) * hidden + theirs : theirs * columns + column;
}

/* Our matrix `to` [gates hidden, columns], packed, from the layout's; a bias has one column. element: bytes of an element, any dtype. */
static inline void qn_rnn_import(int layout, int64_t cell, int64_t hidden, int64_t columns, size_t element, const void *from, void *to)
{
  for (int64_t row = 0; row < qn_rnn_gates(cell) * hidden; row++)
    for (int64_t column = 0; column < columns; column++)
      memcpy((char *)to + (size_t)(row * columns + column) * element,
             (const char *)from + (size_t)qn_rnn_place(layout, cell, hidden, columns, row, column) * element, element);
}

/* The reverse. */
static inline void qn_rnn_export(int layout, int64_t cell, int64_t hidden, int64_t columns, size_t element, const void *from, void *to)
{
  for (int64_t row = 0; row < qn_rnn_gates(cell) * hidden; row++)
    for (int64_t column = 0; column < columns; column++)
      memcpy((char *)to + (size_t)qn_rnn_place(layout, cell, hidden, columns, row, column) * element,
             (const char *)from + (size_t)(row * columns + column) * element, element);
}

#ifdef __cplusplus
}
#endif
#endif
