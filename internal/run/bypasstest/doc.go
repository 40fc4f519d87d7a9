// Package bypasstest contains adversarial tests of durable runs.
//
// The outcomes of checks are scripted: no output with a failed check that decides it
// completes a step, and no legal one is refused.
//
// A generator creates definitions of the steps dialect. A simple model, written from the
// documentation and not from the engine, computes the position of a run and the legal
// commands. A driver completes runs with legal commands and sends illegal ones at every
// position. Each illegal command must be refused by a rule that the model names too, must
// leave the run unchanged, and must reveal nothing about steps that the run has not
// reached. No legal command may be refused.
//
// A test checks that the model imports nothing of the product, so that they cannot share
// defects.
package bypasstest
