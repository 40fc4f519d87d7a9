package execute

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"strings"
	"sync"

	"github.com/guideway-dev/guideway/internal/evidence"
	"github.com/guideway-dev/guideway/internal/workflow/expr/pattern"
)

const (
	// keptBytes is the size of the beginning and of the end of an output in a result.
	keptBytes = 8 << 10
	// searchedBytes is the size of the beginning and of the end in which patterns are
	// searched.
	searchedBytes = 1 << 20
)

// errTooMuchOutput is the error of an output above its limit.
var errTooMuchOutput = errors.New("too much output")

// output keeps the beginning and the end of an output, and hashes all of it.
type output struct {
	mu    sync.Mutex
	most  int64
	total int64
	hash  hash.Hash
	head  []byte
	// tail has at most twice searchedBytes; its end is the end of the output.
	tail []byte
}

func newOutput(most int64) *output { return &output{most: most, hash: sha256.New()} }

// Write implements io.Writer.
func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.hash.Write(p)
	o.total += int64(len(p))
	n := min(len(p), searchedBytes-len(o.head))
	o.head = append(o.head, p[:n]...)
	if o.tail = append(o.tail, p[n:]...); len(o.tail) > 2*searchedBytes {
		o.tail = append(o.tail[:0], o.tail[len(o.tail)-searchedBytes:]...)
	}
	if o.total > o.most {
		return 0, errTooMuchOutput
	}
	return len(p), nil
}

// text is a text in which patterns are searched, in one part or, if its middle is missing, in
// two.
type text struct {
	parts    []string
	complete bool
}

// parts returns the beginning and the end of the output.
func (o *output) parts() text {
	o.mu.Lock()
	defer o.mu.Unlock()
	if int64(len(o.head)+len(o.tail)) == o.total {
		return text{[]string{string(o.head) + string(o.tail)}, true}
	}
	return text{[]string{string(o.head), string(o.tail)}, false}
}

// lastLine returns the last line of the output that is not blank.
func (o *output) lastLine() string {
	o.mu.Lock()
	end := o.head
	if len(o.tail) > 0 {
		end = o.tail
	}
	last := string(end[max(0, len(end)-1000):])
	o.mu.Unlock()
	last = strings.TrimSpace(last)
	return strings.ToValidUTF8(last[strings.LastIndexAny(last, "\r\n")+1:], "?")
}

// record records the output in a result.
func (o *output) record(r *evidence.Result) {
	o.mu.Lock()
	defer o.mu.Unlock()
	r.OutputHash, r.OutputBytes = hex.EncodeToString(o.hash.Sum(nil)), o.total
	all := append(append([]byte(nil), o.head...), o.tail...)
	if o.total <= 2*keptBytes {
		r.Head = strings.ToValidUTF8(string(all), "\uFFFD")
		return
	}
	r.Head = strings.ToValidUTF8(string(all[:keptBytes]), "\uFFFD")
	r.Tail = strings.ToValidUTF8(string(all[len(all)-keptBytes:]), "\uFFFD")
}

// judgeText sets the outcome of a text that must match the patterns of the rule. what
// describes the text.
func (j *job) judgeText(what string, t text) {
	for _, p := range []struct {
		source string
		wanted bool
	}{{j.rule.Matches, true}, {j.rule.Excludes, false}} {
		if p.source == "" {
			continue
		}
		found, err := search(p.source, t)
		switch {
		case err != nil:
			j.giveUp(fmt.Sprintf("%s cannot be searched for /%s/: %v", what, p.source, err))
			return
		case found && !p.wanted:
			j.fail(fmt.Sprintf("%s matches /%s/", what, p.source))
			return
		case !found && !t.complete:
			j.giveUp(fmt.Sprintf("%s has no match of /%s/ in its beginning and its end; its middle is too large to be searched", what, p.source))
			return
		case !found && p.wanted:
			j.fail(fmt.Sprintf("%s does not match /%s/", what, p.source))
			return
		}
	}
	j.pass()
}

// search reports whether a pattern matches in a part of a text.
func search(source string, t text) (found bool, err error) {
	p, err := pattern.Compile(source, "")
	if err != nil {
		return false, err
	}
	for _, part := range t.parts {
		if found, err = p.Match(part); found || err != nil {
			return found, err
		}
	}
	return false, nil
}
