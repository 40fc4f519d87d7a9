// Package run is the run service. It loads a run, has the engine decide, and
// appends what was decided to the journal: chained, so that nobody edits it
// unseen, and durable, so that nothing acknowledged is lost.
package run
