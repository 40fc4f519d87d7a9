// Package phasetest is the adversary of runs of phase workflows. It has tests
// alone, and is to the second dialect what internal/run/cheattest is to the
// first.
//
// A generator makes workflows; a naive model, written from the documents (seed
// 002, DESIGN 4's decisions where it is silent) and not from the engine, says
// where a run stands and what is legal there; a driver walks the runs legally
// and at every position hands in what is not. Each of those must be refused by a
// rule that the model names too, must leave the run as it was, and must tell
// nothing of what the run has not reached. No legal command may be refused. On
// the way each prefix of the events, each state document and many forged lists
// of events are tried.
//
// The model imports nothing of the product, which a test sees to: it would
// otherwise share the defects that it is to find.
package phasetest
