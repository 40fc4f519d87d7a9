// Package checkpoint stores the context of runs and sessions: snapshots that survive the
// conversation, the process and, with PostgreSQL, the machine.
//
// The checkpoints of a session are a series. The newest checkpoint of a series is stored
// whole, each older one as a delta against its successor, and every 32nd one whole. The
// content is in blobs, the metadata in an Index. A blob is always written before the index.
// Every blob contains its metadata, so that a lost index can be rebuilt from the blobs.
//
// Package internal/store/checkpoints opens a Service on the configured stores.
//
// A checkpoint is immutable. Each checkpoint except the first has a parent. A save whose
// parent already has a successor begins a branch, which lists show.
package checkpoint
