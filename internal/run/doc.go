// Package run is the run service. It loads a run, lets the engine decide, and appends the
// decision to the journal. Events are chained, so that edits are detected, and durable, so
// that no acknowledged command is lost.
package run
