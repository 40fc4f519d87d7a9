package holds

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"sync"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/contexts/blob/seal"
	"github.com/guideway-dev/guideway/internal/platform/deployment"
	"github.com/guideway-dev/guideway/internal/platform/lists"
	"github.com/guideway-dev/guideway/internal/platform/shortid"
	"github.com/guideway-dev/guideway/internal/platform/signedfile"
	"github.com/guideway-dev/guideway/internal/platform/textpart"
)

// The limits of the store.
const (
	// maxArguments is the maximum size of the arguments of a held call.
	maxArguments = 64 << 10
	// maxOpen is the maximum number of calls that wait or are approved, and maxOpenOf the
	// maximum for one client.
	maxOpen   = 256
	maxOpenOf = 32
	// maxFinished is the number of finished calls that are kept, for keepFinished.
	maxFinished  = 256
	keepFinished = 7 * 24 * time.Hour
	// maxBytes is the maximum size of the file.
	maxBytes = 32 << 20
	// maxNote is the maximum size of a note or a reason.
	maxNote = 4 << 10
)

// denialTime is the time for which a denied call is refused without asking a person again.
const denialTime = time.Hour

// The default times.
const (
	DefaultWait      = 24 * time.Hour
	DefaultUseWithin = 10 * time.Minute
)

// Options configure a Store. Path and Key are required.
type Options struct {
	// Path is the file, which need not exist.
	Path string
	// Shared, if not nil, has the calls instead of the file.
	Shared deployment.State
	// Key returns the secret of the MAC, which must not be stored next to the file. It is
	// called only if the file exists or is written.
	Key func() ([]byte, error)
	// Texts encrypts arguments, reasons and notes. If nil, they are not encrypted.
	Texts *seal.Texts
	// Answered records an answer of a person that was stored. If nil, nothing is recorded.
	Answered func(context.Context, Call)
	// Now returns the time. If nil, it is time.Now.
	Now func() time.Time
}

// Store stores held calls in a file. Several processes may share it.
type Store struct {
	file  signedfile.File[Call]
	texts *seal.Texts
	now   func() time.Time
	// answered records an answer; it may be nil.
	answered func(context.Context, Call)
	// changing serializes the changes of this process, so that they do not poll the lock of
	// the file.
	changing sync.Mutex
}

// New returns a store. It does not read the file.
func New(opts Options) *Store {
	if opts.Now == nil {
		opts.Now = time.Now
	}
	return &Store{now: opts.Now, texts: opts.Texts, answered: opts.Answered, file: signedfile.File[Call]{
		Path: opts.Path, Shared: opts.Shared, What: "file of held calls", Records: "held calls", MaxBytes: maxBytes, Key: opts.Key,
		IfSeen: "note that they may know the arguments of the calls that wait", IfFull: "answer the calls that wait: guideway calls list",
	}}
}

// Request is a request to send a call that is held.
type Request struct {
	Binding

	// Name is the name by which clients call the tool, and Arguments are its canonical
	// arguments.
	Name      string
	Arguments json.RawMessage
	// Reason is the reason why the call is held.
	Reason string
	// Runs are the open runs of the client.
	Runs []string
	// Wait is the time that a person has to answer, DefaultWait if zero. UseWithin is the
	// time in which an approval must be used, DefaultUseWithin if zero.
	Wait, UseWithin time.Duration
}

// Claim decides on a call. The status of the returned call is Used if a person approved the
// call: the caller sends it, and no other caller does. Otherwise the status is Waiting or
// Denied; a call about which no person was asked becomes a call that waits.
func (s *Store) Claim(ctx context.Context, r Request) (Call, error) {
	records, err := s.read()
	if err != nil {
		return Call{}, err
	}
	// Most repeated calls find an open question and change nothing.
	if known := findDeciding(records, r.Binding, s.currentTime()); known != nil && known.Status != Approved {
		return *known, nil
	}
	var got Call
	err = s.change(ctx, func(records []Call, now time.Time) ([]Call, error) {
		known := findDeciding(records, r.Binding, now)
		switch {
		case known == nil:
			if err := checkRoom(records, r.Binding); err != nil {
				return nil, err
			}
			got = newCall(r, timeAfter(records, now))
			return append(records, got), nil
		case known.Status == Approved:
			known.finish(Used)
			known.UsedAt = now
		}
		got = *known
		return records, nil
	})
	return got, err
}

// timeAfter returns now, or a later time if now is not after the creation of every record.
// So WaitingSince never misses a call.
func timeAfter(records []Call, now time.Time) time.Time {
	for i := range records {
		if next := records[i].Created.Add(time.Millisecond); now.Before(next) {
			now = next
		}
	}
	return now
}

// newCall returns a call that waits for a person.
func newCall(r Request, now time.Time) Call {
	return Call{
		ID: shortid.Timed("hc_", now), Binding: r.Binding, Name: r.Name, Arguments: r.Arguments, Reason: textpart.Shorten(r.Reason, maxNote), Runs: r.Runs, Status: Waiting,
		Created: now, Expires: now.Add(cmp.Or(r.Wait, DefaultWait)), UseSeconds: int(cmp.Or(r.UseWithin, DefaultUseWithin).Seconds()),
	}
}

// checkRoom returns an error if too many calls are open.
func checkRoom(records []Call, b Binding) error {
	all, own := 0, 0
	for i := range records {
		r := &records[i]
		if r.Status != Waiting && r.Status != Approved {
			continue
		}
		all++
		if r.User == b.User && r.Token == b.Token && r.Client == b.Client {
			own++
		}
	}
	if all < maxOpen && own < maxOpenOf {
		return nil
	}
	return guideway.Errorf(guideway.CodeUnavailable, "the call needs the approval of a person, but too many calls already wait: %d of this client (at most %d), %d of all clients (at most %d)", own, maxOpenOf, all, maxOpen).
		WithFix("ask the person to answer the calls that wait: guideway calls list")
}

// findDeciding returns the record that decides on calls with a binding, or nil.
func findDeciding(records []Call, b Binding, now time.Time) *Call {
	return lists.Find(records, func(r *Call) bool { return r.Binding == b && r.decides(now) })
}

// AnswerRequest is the answer of a person to a held call.
type AnswerRequest struct {
	ID string
	// User is the owner of the call.
	User string
	Answer
}

// Answer stores the answer of a person. A call is answered once.
func (s *Store) Answer(ctx context.Context, r AnswerRequest) (Call, error) {
	var got Call
	err := s.change(ctx, func(records []Call, now time.Time) ([]Call, error) {
		c := findCall(records, r.User, r.ID)
		if c == nil {
			return nil, unknownCall(r.ID)
		}
		if c.Status != Waiting {
			return nil, guideway.Errorf(guideway.CodeConflict, "the held call %s is %s; only a call that waits can be answered", c.ID, c.Status).
				WithFix("ask the agent to repeat the call if it still needs it; guideway calls list prints the calls that wait")
		}
		r.At, r.Note = now, textpart.Shorten(r.Note, maxNote)
		c.Answer = &r.Answer
		if r.Approve {
			c.Status, c.Expires = Approved, now.Add(time.Duration(c.UseSeconds)*time.Second)
		} else {
			c.finish(Denied)
			c.Expires = now.Add(denialTime)
		}
		got = *c
		return records, nil
	})
	if err == nil && s.answered != nil {
		s.answered(ctx, got)
	}
	return got, err
}

// CloseForm records that a form about a call was closed without an answer of a person.
func (s *Store) CloseForm(ctx context.Context, user, id string, byClient bool) error {
	return s.change(ctx, func(records []Call, now time.Time) ([]Call, error) {
		c := findCall(records, user, id)
		if c == nil {
			return nil, unknownCall(id)
		}
		count := 1
		if c.Closed != nil {
			count += c.Closed.Count
		}
		c.Closed = &ClosedForm{At: now, ByClient: byClient, Count: count}
		return records, nil
	})
}

// List returns the held calls of a user, the newest first.
func (s *Store) List(user string) ([]Call, error) {
	records, err := s.read()
	if err != nil {
		return nil, err
	}
	now, list := s.currentTime(), []Call{}
	for _, r := range slices.Backward(records) {
		if r.User == user {
			r.updateStatus(now)
			list = append(list, r)
		}
	}
	return list, nil
}

// WaitingSince returns the calls of all users that wait for a person and were created after
// a time, the oldest first.
func (s *Store) WaitingSince(after time.Time) (list []Call, err error) {
	records, err := s.read()
	if err != nil {
		return nil, err
	}
	now := s.currentTime()
	for _, r := range records {
		if r.updateStatus(now); r.Status == Waiting && r.Created.After(after) {
			list = append(list, r)
		}
	}
	return list, nil
}

// Get returns a held call of a user.
func (s *Store) Get(user, id string) (Call, error) {
	list, err := s.List(user)
	if err != nil {
		return Call{}, err
	}
	c := findCall(list, user, id)
	if c == nil {
		return Call{}, unknownCall(id)
	}
	return *c, nil
}

// findCall returns the call of a user, or nil.
func findCall(records []Call, user, id string) *Call {
	return lists.Find(records, func(r *Call) bool { return r.ID == id && r.User == user })
}

func unknownCall(id string) error {
	return guideway.Errorf(guideway.CodeNotFound, "there is no held call %.40q", id).WithFix("guideway calls list")
}

func (s *Store) currentTime() time.Time { return s.now().UTC().Truncate(time.Millisecond) }

// change edits the records: expired calls are ended before, and old ones removed after the
// edit.
func (s *Store) change(ctx context.Context, edit func([]Call, time.Time) ([]Call, error)) error {
	s.changing.Lock()
	defer s.changing.Unlock()
	return s.file.Change(ctx, func(records []Call) ([]Call, error) {
		if err := s.openCalls(ctx, records); err != nil {
			return nil, err
		}
		now := s.currentTime()
		for i := range records {
			records[i].updateStatus(now)
		}
		records, err := edit(records, now)
		if err != nil {
			return nil, err
		}
		return s.sealCalls(ctx, prune(records, now))
	})
}

// read returns the decrypted records.
func (s *Store) read() ([]Call, error) {
	records, err := s.file.Read()
	if err == nil {
		err = s.openCalls(context.Background(), records)
	}
	return records, err
}

// callTexts are the encrypted parts of a call.
type callTexts struct {
	Arguments    json.RawMessage
	Reason, Note string
}

// openCalls decrypts records in place.
func (s *Store) openCalls(ctx context.Context, records []Call) error {
	for i := range records {
		c := &records[i]
		if c.Sealed == nil {
			continue
		}
		var texts callTexts
		plain, err := s.texts.Open(ctx, c.Sealed, "held call "+c.ID)
		if err == nil {
			err = json.Unmarshal(plain, &texts)
		}
		if err != nil {
			return err
		}
		c.Sealed, c.Arguments, c.Reason = nil, texts.Arguments, texts.Reason
		if c.Answer != nil {
			c.Answer.Note = texts.Note
		}
	}
	return nil
}

// sealCalls encrypts records in place, but not the answers that they share with others.
func (s *Store) sealCalls(ctx context.Context, records []Call) ([]Call, error) {
	for i := range records {
		c := &records[i]
		texts := callTexts{Arguments: c.Arguments, Reason: c.Reason}
		if c.Answer != nil {
			texts.Note = c.Answer.Note
		}
		plain, err := json.Marshal(texts)
		if err != nil {
			return nil, guideway.Errorf(guideway.CodeInternal, "encode the held call %s: %w", c.ID, err)
		}
		stored, err := s.texts.Seal(ctx, plain, "held call "+c.ID)
		if err != nil {
			return nil, err
		}
		if !seal.IsSealed(stored) {
			return records, nil
		}
		c.Sealed, c.Arguments, c.Reason = stored, nil, ""
		if c.Answer != nil {
			answer := *c.Answer
			answer.Note, c.Answer = "", &answer
		}
	}
	return records, nil
}

// prune removes the oldest records that decide on no call.
func prune(records []Call, now time.Time) []Call {
	finished := 0
	for i := range records {
		if !records[i].decides(now) {
			finished++
		}
	}
	return slices.DeleteFunc(records, func(r Call) bool {
		if r.decides(now) {
			return false
		}
		old := finished > maxFinished || now.Sub(r.Created) > keepFinished
		if old {
			finished--
		}
		return old
	})
}
