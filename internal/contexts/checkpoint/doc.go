// Package checkpoint keeps the context of runs and sessions: snapshots that
// outlive the conversation, the process and, with PostgreSQL, the machine.
//
// A session's checkpoints are a line. The newest of a line is stored whole, each
// older one as what differs from its successor, and every 32nd is whole again. The
// content lies in blobs, what is known of it in an Index: the blob is written
// first, the index second, never the other way round. Every blob says what it is,
// so that a lost index is made anew from the blobs.
//
// Package internal/store/checkpoints opens a Service on whatever there is to keep
// checkpoints.
//
// A checkpoint is never changed. It has a parent; who names another parent than
// the last begins a branch, which lists show.
package checkpoint
