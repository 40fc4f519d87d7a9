// Package bypasstest is the adversary of durable runs. It has tests alone.
//
// A generator makes definitions of the steps dialect; a naive model, written from
// the documents and not from the engine, says where a run stands and what is
// legal there; a driver walks the runs legally and at every position hands in
// what is not. Each of those must be refused by a rule that the model names too,
// must leave the run as it was, and must tell nothing of a step that the run has
// not reached. No legal command may be refused.
//
// The model imports nothing of the product, which a test sees to: it would
// otherwise share the defects that it is to find.
package bypasstest
