// Package enginetest tests runs of phase workflows against an adversary. It contains tests,
// and the Explorer, which tests of both dialects use. Its counterpart for step workflows is
// internal/run/bypasstest. The models of the two packages share no code: each compiles alone,
// with the standard library only.
//
// A generator creates workflows. A simple model, written from the specification
// (docs/phases.md) and not from the engine, computes the position of a run and its legal
// commands. A driver executes runs legally and sends illegal commands at every position.
// Each of these must be refused by one of the rules that the model names, must not change
// the run, and must not reveal anything that the run has not reached. No legal command may
// be refused. The driver also tests each prefix of the events, each state document and many
// forged lists of events.
//
// The model imports nothing of the product, which a test enforces, so that it does not
// share the defects that it must find.
package enginetest
