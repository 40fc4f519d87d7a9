package contexts

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"sync"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/contexts/compress"
	"github.com/guideway-dev/guideway/internal/engine"
	"github.com/guideway-dev/guideway/internal/platform/digest"
	"github.com/guideway-dev/guideway/internal/run"
)

// References identify omitted values. Values of a run need not be stored, because its
// journal contains every value:
//
//	r_….12.0123456789   a variable of a run, as of its event 12
//	r_….12              the variables of a run, as of its event 12
//	r_….12-40           the outputs submitted by the events 12 to 40
//	o_…                 the variables of a context that a reduction stored
//	c_…                 the variables of a checkpoint
//	o_….3, c_….3        the fourth of these variables, by name
var (
	valueRef = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^(r_[0-9a-z]{1,60})\.([0-9]{1,15})\.([0-9a-f]{10})$`)
	})
	passageRef = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^(r_[0-9a-z]{1,60})\.([0-9]{1,15})-([0-9]{1,15})$`) })
	eventRef   = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^(r_[0-9a-z]{1,60})\.([0-9]{1,15})$`) })
	storedRef  = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^([oc]_[0-9a-z]{1,60})(?:\.([0-9]{1,6}))?$`) })
)

// refForms is the fix for a ref that has no value.
const refForms = "pass a ref that workflow_context_compress, workflow_context_prioritize, workflow_status or workflow_resume returned, or a ref from a note that replaces an omitted value"

func valueHash(value []byte) string {
	return digest.Hex(value)[:10]
}

func runValueRef(id string, seq int64, value []byte) string {
	return fmt.Sprintf("%s.%d.%s", id, seq, valueHash(value))
}

func runPassageRef(id string, from, to int64) string { return fmt.Sprintf("%s.%d-%d", id, from, to) }

func runEventRef(id string, seq int64) string { return fmt.Sprintf("%s.%d", id, seq) }

// loadRef returns the variables or the value that a reference identifies, byte for byte.
func (s *Service) loadRef(ctx context.Context, c run.Caller, r LoadRequest, out *Loaded) (*source, error) {
	if r.NoRuns && isRun(r.Ref) {
		return nil, guideway.Errorf(guideway.CodeForbidden, "the token does not allow the toolset runs, to which the ref %.80q belongs", r.Ref).
			WithFix("use a token that allows the toolset runs")
	}
	src := &source{ref: r.Ref}
	var err error
	if m := storedRef().FindStringSubmatch(r.Ref); m != nil {
		return s.loadStored(ctx, c, m[1], m[2])
	} else if m := valueRef().FindStringSubmatch(r.Ref); m != nil {
		out.RunID = m[1]
		src.value, err = s.loadValue(ctx, c, m[1], parseNumber(m[2]), m[3])
	} else if m := passageRef().FindStringSubmatch(r.Ref); m != nil {
		out.RunID = m[1]
		if _, err = s.requireRuns(); err == nil {
			src.value, err = ListOutputs(ctx, s.o.Runs, c, m[1], parseNumber(m[2]), parseNumber(m[3]))
		}
	} else if m := eventRef().FindStringSubmatch(r.Ref); m != nil {
		out.RunID = m[1]
		return s.loadEvent(ctx, c, m[1], parseNumber(m[2]))
	} else {
		return nil, newInvalid("%.80q is not a ref", r.Ref).WithFix(refForms)
	}
	return src, err
}

// loadStored returns the variables of a checkpoint or of a stored context, or with the digits
// of an index one of them.
func (s *Service) loadStored(ctx context.Context, c run.Caller, id, index string) (*source, error) {
	src, err := s.loadVariables(ctx, c, id)
	if err != nil || index == "" {
		return src, err
	}
	keys, i := slices.Sorted(maps.Keys(src.vars)), int(parseNumber(index))
	if i >= len(keys) {
		return nil, newLostRef(id + "." + index)
	}
	return &source{ref: id + "." + index, value: src.vars[keys[i]]}, nil
}

// loadVariables returns the variables of a checkpoint or of a stored context.
func (s *Service) loadVariables(ctx context.Context, c run.Caller, id string) (*source, error) {
	_, loaded, back, err := s.readCheckpoint(ctx, c, LoadRequest{ID: id})
	if err == nil && loaded.Degraded != nil {
		err = guideway.Errorf(guideway.CodeInternal, "the checkpoint %s cannot be read: %s", id, loaded.Degraded.Problem)
	}
	if err != nil {
		return nil, err
	}
	return s.checkpointSource(c, loaded, back), nil
}

// loadEvent returns the variables of a run, as of one of its events.
func (s *Service) loadEvent(ctx context.Context, c run.Caller, id string, seq int64) (*source, error) {
	d, err := s.lookUpRun(ctx, c, run.Ref{RunID: id})
	if err != nil {
		return nil, err
	}
	if seq != d.Seq {
		then, err := s.o.Runs.StateAt(ctx, c, run.Ref{RunID: id}, seq)
		if err != nil {
			return nil, err
		}
		d.Variables = then.State.Vars
	}
	m, err := s.materialOf(ctx, c, d)
	if err != nil {
		return nil, err
	}
	return &source{ref: runEventRef(id, seq), vars: m.values, material: func(_ context.Context, some compress.Context) (*material, error) {
		m.values = some
		return m, nil
	}}, nil
}

// parseNumber parses the digits of a reference.
func parseNumber(digits string) int64 {
	n, _ := strconv.ParseInt(digits, 10, 64) // the pattern of references allows at most 15 digits
	return n
}

func newLostRef(ref string) error {
	return guideway.Errorf(guideway.CodeNotFound, "there is no value for the ref %s", ref).WithFix(refForms)
}

// eventPage is the number of events read at once.
const eventPage = 200

// loadValue returns the value with the given hash that a run had at an event.
func (s *Service) loadValue(ctx context.Context, c run.Caller, id string, seq int64, hash string) (json.RawMessage, error) {
	d, err := s.lookUpRun(ctx, c, run.Ref{RunID: id})
	if err != nil {
		return nil, err
	}
	for _, value := range d.Variables { // most values have not changed since the event
		if text, err := encodeJSON(value); err == nil && valueHash(text) == hash {
			return text, nil
		}
	}
	// Newest events first, since most references are to recent values.
	for last := min(seq, d.Seq); last > 0; last -= eventPage {
		after := max(last-eventPage, 0)
		events, err := s.o.Runs.Events(ctx, c, run.Ref{RunID: id}, after, int(last-after))
		if err != nil {
			return nil, err
		}
		for _, e := range slices.Backward(events) {
			if value := valueIn(e, hash); value != nil {
				return value, nil
			}
		}
	}
	return nil, newLostRef(runValueRef(id, seq, nil)[:len(id)+1] + "… " + hash)
}

// valueIn returns the value with the given hash that an event has set, or nil.
func valueIn(e run.Event, hash string) json.RawMessage {
	var fact struct {
		Vars map[string]json.RawMessage `json:"vars"`
	}
	if json.Unmarshal(e.Data, &fact) != nil {
		return nil
	}
	for _, value := range fact.Vars {
		if valueHash(value) == hash {
			return value
		}
	}
	return nil
}

// ListOutputs returns the outputs submitted by a range of events of a run. It returns
// CodeNotFound if there are none.
func ListOutputs(ctx context.Context, runs Runs, c run.Caller, id string, from, to int64) (json.RawMessage, error) {
	type passage struct {
		Seq  int64  `json:"seq"`
		Step string `json:"step"`
		// Label is "evidence" or "claim" for a completed step.
		Label  string `json:"label,omitempty"`
		Round  int    `json:"round,omitempty"`
		Output string `json:"output,omitempty"`
		Notes  string `json:"notes,omitempty"`
		Option string `json:"option,omitempty"`
	}
	list := []passage{}
	for after := max(from, 1) - 1; after < to; {
		events, err := runs.Events(ctx, c, run.Ref{RunID: id}, after, int(min(to-after, eventPage)))
		if err != nil {
			return nil, err
		}
		if len(events) == 0 {
			break
		}
		for _, e := range events {
			after = e.Seq
			var fact engine.Event
			if !isFact(e) || json.Unmarshal(e.Data, &fact) != nil || fact.Output == "" && fact.Notes == "" && fact.Option == "" {
				continue
			}
			list = append(list, passage{Seq: e.Seq, Step: fact.Step, Label: e.Label, Round: fact.Round, Output: fact.Output, Notes: fact.Notes, Option: fact.Option})
		}
	}
	if len(list) == 0 {
		return nil, newLostRef(runPassageRef(id, from, to))
	}
	return encodeJSON(list)
}

// isFact reports whether an event belongs to the engine.
func isFact(e run.Event) bool {
	return e.IsFact()
}
