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

// place is where a worker finds its checkpoints, as one value of its environment.
type place struct {
	Dir string `json:"dir"`
	// Store is that of checkpoints.Options.
	Store string `json:"store,omitempty"`
	// Sealed turns encryption on, with a key file.
	Sealed bool `json:"sealed,omitempty"`
	// PerLine bounds a session; 0 is 10,000.
	PerLine int `json:"perLine,omitempty"`
	// Ahead is how many seconds the worker's clock is ahead.
	Ahead int64 `json:"ahead,omitempty"`
	// Room, if not 0, bounds the directory to so many bytes: the worker mounts a
	// file system of its own there, which is gone when it ends.
	Room int64 `json:"room,omitempty"`
}

// Disk implements crash.Place.
func (p place) Disk() crash.Disk { return crash.Disk{Dir: p.Dir, Room: p.Room} }

func (p place) data() string    { return filepath.Join(p.Dir, "data") }
func (p place) keyFile() string { return filepath.Join(p.Dir, "keys", "key") }

// text is what identifies a context: the session that it is of, and its number.
type text struct {
	Session string `json:"session"`
	N       int    `json:"n"`
	// Size is about how many bytes it has.
	Size int `json:"size"`
}

// json gives the context: the same for the same text, and much the same for the
// next one.
func (x text) json() string {
	var b strings.Builder
	fmt.Fprintf(&b, `{"log":[`)
	for line := x.N; b.Len() < x.Size; line++ {
		random := rand.New(rand.NewPCG(uint64(line), 99))
		fmt.Fprintf(&b, `"line %d: %016x was built and %s",`, line, random.Uint64(), []string{"passed", "failed", "was skipped"}[random.IntN(3)])
	}
	fmt.Fprintf(&b, `"end"],"n":%d,"session":%q}`, x.N, x.Session)
	return b.String()
}

// sum is the hash of a context, which replies have in its place.
func sum(context string) string {
	h := sha256.Sum256([]byte(context))
	return hex.EncodeToString(h[:])
}

func (x text) sum() string { return sum(x.json()) }

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

// op is what a worker does.
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
	// opMaintain is what a process does at its start.
	opMaintain op = "maintain"
	opCrowd    op = "crowd"
	// opFill takes the room of a bounded directory but for Room bytes, opDrain
	// gives it back. opReopen closes the checkpoints and opens them again.
	opFill   op = "fill"
	opDrain  op = "drain"
	opReopen op = "reopen"
)

// reply is a line on a worker's standard output: the acknowledgement of what is in
// it.
type reply struct {
	// Code, Message and Fix are of an error.
	Code    guideway.Code `json:"code,omitempty"`
	Message string        `json:"message,omitempty"`
	Fix     string        `json:"fix,omitempty"`

	one
	// Degraded says that it is not the one that was meant.
	Degraded bool     `json:"degraded,omitempty"`
	Warnings []string `json:"warnings,omitempty"`
	Mode     string   `json:"mode,omitempty"`
	List     []one    `json:"list,omitempty"`
	// Damaged and Total are of a verification, Stored and Bytes of all.
	Damaged []string `json:"damaged,omitempty"`
	Total   int      `json:"total,omitempty"`
	Crowd   []saved  `json:"crowd,omitempty"`
}

// one is a checkpoint.
type one struct {
	Checkpoint string `json:"checkpoint,omitempty"`
	Number     int64  `json:"number,omitempty"`
	Parent     string `json:"parent,omitempty"`
	Branch     bool   `json:"branch,omitempty"`
	Created    int64  `json:"created,omitempty"`
	// Sum is the hash of its context.
	Sum string `json:"sum,omitempty"`
}

// OK says that the order was carried out.
func (r reply) OK() bool { return r.Code == "" }

// worker is a process that has checkpoints open.
type worker = crash.Worker[order, reply]

// hire starts a worker.
func hire(t testing.TB, p place) *worker {
	t.Helper()
	return crash.Hire[order, reply](t, p)
}
