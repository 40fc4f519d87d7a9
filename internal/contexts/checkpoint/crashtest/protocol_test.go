package crashtest

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/testutil/crash"
)

// place is the environment of a worker: its store and options, passed as one environment
// variable.
type place struct {
	Dir string `json:"dir"`
	// Store is the mode of checkpoints.Options.
	Store string `json:"store,omitempty"`
	// Sealed turns encryption on, with a key file.
	Sealed bool `json:"sealed,omitempty"`
	// PerSeries bounds a session; 0 means 10,000.
	PerSeries int `json:"perLine,omitempty"`
	// Ahead is the number of seconds by which the worker's clock is ahead.
	Ahead int64 `json:"ahead,omitempty"`
	// Room, if not 0, bounds the directory to that many bytes: the worker mounts a private
	// file system on it, which disappears when the worker ends.
	Room int64 `json:"room,omitempty"`
}

// Disk implements crash.Place.
func (p place) Disk() crash.Disk { return crash.Disk{Dir: p.Dir, Room: p.Room} }

func (p place) dataDir() string { return filepath.Join(p.Dir, "data") }
func (p place) keyFile() string { return filepath.Join(p.Dir, "keys", "key") }

// text identifies a context: its session and its number.
type text struct {
	Session string `json:"session"`
	N       int    `json:"n"`
	// Size is the approximate size of the context in bytes.
	Size int `json:"size"`
}

// contextJSON returns the context, which is deterministic and similar to the context of the
// next number.
func (x text) contextJSON() string {
	var b strings.Builder
	fmt.Fprintf(&b, `{"log":[`)
	for line := x.N; b.Len() < x.Size; line++ {
		random := rand.New(rand.NewPCG(uint64(line), 99))
		fmt.Fprintf(&b, `"line %d: %016x was built and %s",`, line, random.Uint64(), []string{"passed", "failed", "was skipped"}[random.IntN(3)])
	}
	fmt.Fprintf(&b, `"end"],"n":%d,"session":%q}`, x.N, x.Session)
	return b.String()
}

// contextSum returns the hash of a context, which replies contain instead of the context.
func contextSum(context string) string {
	h := sha256.Sum256([]byte(context))
	return hex.EncodeToString(h[:])
}

func (x text) contextSum() string { return contextSum(x.contextJSON()) }

// order is a line on a worker's standard input.
type order struct {
	Do op `json:"do"`

	Session    string `json:"session,omitempty"`
	Checkpoint string `json:"checkpoint,omitempty"`
	Text       text   `json:"text,omitzero"`
	Head       string `json:"head,omitempty"`
	Room       int64  `json:"room,omitempty"`
	Crowd      *crowd `json:"crowd,omitempty"`
}

// op is the operation of an order.
type op string

const (
	opSave    op = "save"
	opLoad    op = "load"
	opList    op = "list"
	opDelete  op = "delete"
	opKeep    op = "keep"
	opRecall  op = "recall"
	opVerify  op = "verify"
	opRebuild op = "rebuild"
	// opMaintain runs the maintenance that follows a start.
	opMaintain op = "maintain"
	opCrowd    op = "crowd"
	// opFill fills a bounded directory except for Room bytes, opDrain frees the space
	// again. opReopen closes the checkpoints and opens them again.
	opFill   op = "fill"
	opDrain  op = "drain"
	opReopen op = "reopen"
)

// reply is a line on a worker's standard output. It acknowledges an order.
type reply struct {
	// Code, Message and Fix belong to an error.
	Code    guideway.Code `json:"code,omitempty"`
	Message string        `json:"message,omitempty"`
	Fix     string        `json:"fix,omitempty"`

	listedCheckpoint
	// Degraded reports that the loaded checkpoint is not the requested one.
	Degraded bool               `json:"degraded,omitempty"`
	Warnings []string           `json:"warnings,omitempty"`
	Mode     string             `json:"mode,omitempty"`
	List     []listedCheckpoint `json:"list,omitempty"`
	// Damaged and Total are the result of a verification.
	Damaged []string `json:"damaged,omitempty"`
	Total   int      `json:"total,omitempty"`
	Crowd   []saved  `json:"crowd,omitempty"`
}

// listedCheckpoint is a checkpoint in a reply.
type listedCheckpoint struct {
	Checkpoint string `json:"checkpoint,omitempty"`
	Number     int64  `json:"number,omitempty"`
	Parent     string `json:"parent,omitempty"`
	Branch     bool   `json:"branch,omitempty"`
	Created    int64  `json:"created,omitempty"`
	// Sum is the hash of the checkpoint's context.
	Sum string `json:"sum,omitempty"`
}

// OK reports whether the order succeeded.
func (r reply) OK() bool { return r.Code == "" }

// worker is a process that has checkpoints open.
type worker = crash.Worker[order, reply]

// startWorker starts a worker.
func startWorker(t testing.TB, p place) *worker {
	t.Helper()
	return crash.StartWorker[order, reply](t, p)
}
