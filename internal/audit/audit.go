// Package audit keeps a log of logins, tokens, approvals, refused credentials and changes of
// the configuration. The log is a file to which entries are only appended, or in the state
// that the instances of a deployment share. Each entry is chained to the previous one by a
// MAC, so that an editor without the key is detected.
package audit

import (
	"bufio"
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/gofrs/flock"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/platform/atomicfile"
	"github.com/guideway-dev/guideway/internal/platform/deployment"
	"github.com/guideway-dev/guideway/internal/platform/textpart"
)

// Kind is the kind of an entry.
type Kind string

// The kinds.
const (
	// Login and Logout are of a browser; LoginRefused is a login that failed.
	Login        Kind = "login"
	LoginRefused Kind = "login_refused"
	Logout       Kind = "logout"
	// TokenCreated and TokenRevoked are of named tokens.
	TokenCreated Kind = "token_created"
	TokenRevoked Kind = "token_revoked"
	// Refused is a request without a valid credential, or without the right.
	Refused Kind = "credential_refused"
	// Approval is the answer of a person: to a gate, a held call, or the input of a machine.
	Approval Kind = "approval"
	// Configuration is a change of upstreams, definitions, hooks or pins.
	Configuration Kind = "configuration"
)

// Entry is an entry of the log. Log sets Seq, At and MAC.
type Entry struct {
	// Seq starts at 1 and has no gaps.
	Seq  int64     `json:"seq"`
	At   time.Time `json:"at"`
	Kind Kind      `json:"kind"`
	// User and Client are the principal, if known, and Via is the channel.
	User   string `json:"user,omitempty"`
	Client string `json:"client,omitempty"`
	Via    string `json:"via,omitempty"`
	// Subject is the changed object or the requested path, and Detail the result or reason.
	Subject string `json:"subject,omitempty"`
	Detail  string `json:"detail,omitempty"`
	MAC     string `json:"mac"`
}

const (
	// maxText is the maximum number of bytes of a text of an entry.
	maxText = 500
	// maxEntry is the maximum size of a line.
	maxEntry = 16 << 10
	// lockRetry is the interval of attempts to get a lock that another process holds.
	lockRetry = 5 * time.Millisecond
	// lockTime is the time limit for the lock: a stopped process delays no answer for longer.
	lockTime = 2 * time.Second
)

// Log is a log. All fields except Shared are required.
type Log struct {
	// Shared, if not nil, has the entries instead of the file.
	Shared deployment.State

	// Path is the file, and HeadPath a file elsewhere that has the last entry, so that a
	// truncated or restored file is detected.
	Path, HeadPath string
	// Key returns the key of the MACs, which must not be stored next to the file.
	Key func(context.Context) ([]byte, error)
	// Now is the clock.
	Now func() time.Time
}

// Append adds an entry.
func (l *Log) Append(ctx context.Context, e Entry) (err error) {
	key, err := l.Key(ctx)
	if err != nil {
		return err
	}
	if l.Shared != nil {
		return l.appendShared(ctx, key, e)
	}
	for _, dir := range []string{filepath.Dir(l.Path), filepath.Dir(l.HeadPath)} {
		if err := atomicfile.MakeDir(dir); err != nil {
			return l.failed("create", err)
		}
	}
	for _, path := range []string{l.Path, l.Path + ".lock"} {
		if err := atomicfile.EnsureFile(path); err != nil {
			return l.failed("create", err)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, lockTime)
	defer cancel()
	lock := flock.New(l.Path + ".lock")
	if _, err := lock.TryLockContext(ctx, lockRetry); err != nil {
		return l.failed("lock", err)
	}
	defer func() { _ = lock.Unlock() }()
	file, err := os.OpenFile(l.Path, os.O_RDWR, 0)
	if err != nil {
		return l.failed("open", err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	last, end, err := lastEntry(file)
	if err != nil {
		return l.failed("read", err)
	}
	head, err := l.readHead(ctx)
	if err != nil {
		return err
	}
	if head.Seq > last.Seq { // Entries are missing: the gap in the numbers stays.
		last = head
	}
	line := l.encode(key, last, e)
	// The rest of a write that a crash has interrupted is replaced.
	if _, err := file.WriteAt(append(line, '\n'), end); err != nil {
		return l.failed("write", err)
	}
	if err := errors.Join(file.Truncate(end+int64(len(line))+1), file.Sync()); err != nil {
		return l.failed("write", err)
	}
	if err := atomicfile.Replace(l.HeadPath, string(line)+"\n"); err != nil {
		return l.failed("write the head of", err)
	}
	return nil
}

// The names of the entries and of the last one in the shared state.
const (
	sharedPrefix = "audit/"
	sharedHead   = "audit-head"
)

// appendShared adds an entry to the shared state.
func (l *Log) appendShared(ctx context.Context, key []byte, e Entry) error {
	return l.Shared.Change(ctx, sharedHead, func(head string) (string, error) {
		for {
			var last Entry
			if head != "" {
				if err := json.Unmarshal([]byte(head), &last); err != nil {
					return "", l.failed("read the head of", err)
				}
			}
			name := fmt.Sprintf("%s%016d", sharedPrefix, last.Seq+1)
			line := string(l.encode(key, last, e))
			err := l.Shared.Create(ctx, deployment.Entry{Name: name, Text: line, Touched: l.Now()})
			if !errors.Is(err, fs.ErrExist) {
				return line, err
			}
			// An instance ended before it stored the head.
			there, err := deployment.Get(ctx, l.Shared, name)
			if err != nil {
				return "", err
			}
			head = there.Text
		}
	})
}

// encode returns the line of an entry after another one.
func (l *Log) encode(key []byte, last, e Entry) []byte {
	e.Seq, e.At = last.Seq+1, l.Now().UTC().Truncate(time.Microsecond)
	for _, text := range []*string{&e.User, &e.Client, &e.Via, &e.Subject, &e.Detail} {
		*text = textpart.Clip(strings.ToValidUTF8(*text, "\uFFFD"), maxText) // other bytes would change when they are read
	}
	e.MAC = chain(key, last.MAC, e)
	line, _ := json.Marshal(e) // texts and numbers always encode
	return line
}

// chain returns the MAC of an entry after an entry with a MAC.
func chain(key []byte, before string, e Entry) string {
	e.MAC = before
	text, _ := json.Marshal(e) // texts and numbers always encode
	h := hmac.New(sha256.New, key)
	h.Write([]byte("guideway audit 1\x00"))
	h.Write(text)
	return hex.EncodeToString(h.Sum(nil))
}

// lastEntry returns the last complete entry and the position after it. The entry after a line
// that cannot be read breaks the chain, which Verify reports.
func lastEntry(file *os.File) (last Entry, end int64, err error) {
	size, err := file.Seek(0, io.SeekEnd)
	if err != nil || size == 0 {
		return Entry{}, 0, err
	}
	start := max(0, size-2*maxEntry)
	tail := make([]byte, size-start)
	if _, err := file.ReadAt(tail, start); err != nil {
		return Entry{}, 0, err
	}
	complete := tail[:bytes.LastIndexByte(tail, '\n')+1]
	if len(complete) == 0 {
		if start > 0 {
			return Entry{}, 0, errors.New("the last line is too long")
		}
		return Entry{}, 0, nil
	}
	line := complete[bytes.LastIndexByte(complete[:len(complete)-1], '\n')+1:]
	_ = json.Unmarshal(line, &last)
	return last, start + int64(len(complete)), nil
}

// Visit calls visit for each entry after a number, in order. Without a file, there are no entries.
func (l *Log) Visit(after int64, visit func(line []byte, e Entry) error) error {
	if l.Shared != nil {
		return l.visitShared(after, visit)
	}
	file, err := os.Open(l.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return l.failed("read", err)
	}
	defer func() { _ = file.Close() }()
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, maxEntry)
	for lines.Scan() {
		if err := l.visitLine(lines.Bytes(), after, visit); err != nil {
			return err
		}
	}
	if err := lines.Err(); err != nil {
		return l.failed("read", err)
	}
	return nil
}

func (l *Log) visitShared(after int64, visit func(line []byte, e Entry) error) error {
	ctx, cancel := deployment.Context()
	defer cancel()
	list, err := l.Shared.Entries(ctx, sharedPrefix)
	for i := 0; err == nil && i < len(list); i++ {
		err = l.visitLine([]byte(list[i].Text), after, visit)
	}
	return err
}

func (l *Log) visitLine(line []byte, after int64, visit func(line []byte, e Entry) error) error {
	var e Entry
	if err := json.Unmarshal(line, &e); err != nil {
		return l.failed("read", err)
	}
	if e.Seq <= after {
		return nil
	}
	return visit(line, e)
}

// readHead returns the recorded last entry, or the zero Entry.
func (l *Log) readHead(ctx context.Context) (head Entry, err error) {
	var text []byte
	if l.Shared != nil {
		var e deployment.Entry
		e, err = deployment.Get(ctx, l.Shared, sharedHead)
		text = []byte(e.Text)
	} else {
		text, err = os.ReadFile(l.HeadPath)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return Entry{}, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &head)
	}
	if err != nil {
		err = l.failed("read the head of", err)
	}
	return head, err
}

// Verify checks the chain, and that no last entry is missing. It returns the number of
// entries; a break is an error with CodeConflict.
func (l *Log) Verify(ctx context.Context) (entries int64, err error) {
	key, err := l.Key(ctx)
	if err != nil {
		return 0, err
	}
	head, err := l.readHead(ctx)
	if err != nil {
		return 0, err
	}
	var last Entry
	broken := func(seq int64, why string) error {
		return guideway.Errorf(guideway.CodeConflict, "entry %d of the audit log %s cannot be trusted: %s", seq, l.Path, why).
			WithFix("compare the log with an export or a backup")
	}
	err = l.Visit(0, func(line []byte, e Entry) error {
		same, _ := json.Marshal(e)
		switch {
		case e.Seq != last.Seq+1:
			return broken(last.Seq+1, "it is missing")
		case !bytes.Equal(same, line) || !hmac.Equal([]byte(e.MAC), []byte(chain(key, last.MAC, e))):
			return broken(e.Seq, "it was changed")
		case e.Seq == head.Seq && e.MAC != head.MAC:
			return broken(e.Seq, "it differs from the recorded head")
		}
		last = e
		return nil
	})
	switch {
	case err != nil:
	case last.Seq < head.Seq:
		err = broken(last.Seq+1, "it is missing, although the recorded head has it")
	case last.Seq > 0 && head.Seq == 0:
		err = broken(last.Seq, "the recorded head is missing")
	}
	return last.Seq, err
}

func (l *Log) failed(what string, err error) error {
	return guideway.Errorf(guideway.CodeUnavailable, "%s the audit log %s: %w", what, l.Path, err).
		WithFix("make %s a file that only this user can read and write", l.Path)
}
