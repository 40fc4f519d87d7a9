package contexts

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/guideway-dev/guideway/internal/contexts/checkpoint"
	"github.com/guideway-dev/guideway/internal/contexts/compress"
	"github.com/guideway-dev/guideway/internal/platform/textpart"
	"github.com/guideway-dev/guideway/internal/run"
)

const (
	// maxLoaded bounds an answer without a budget, in bytes.
	maxLoaded = 32_000
	// maxLine bounds a numbered line of a text, in bytes, so that a part can be small.
	maxLine = 500
	// questionBudget is the default budget of a question, noteTokens the size of a note.
	questionBudget = 2000
	noteTokens     = 20
)

// source is what a LoadRequest selects: variables, or one value.
type source struct {
	// ref loads the same variables or value again.
	ref  string
	vars compress.Context
	// value is set if vars is nil.
	value json.RawMessage
	// material returns variables of the source with the data that is needed to reduce them.
	// It may be nil.
	material func(context.Context, compress.Context) (*material, error)
}

// validate refuses combinations of parameters of which one would have no effect.
func (r LoadRequest) validate() error {
	switch {
	case r.Ref != "" && (r.ID != "" || r.Session != ""):
		return newInvalid("a ref cannot be combined with a checkpointId or a sessionId").WithFix("omit checkpointId and sessionId")
	case r.Question != "" && (r.Lines != "" || r.Find != ""):
		return newInvalid("a question cannot be combined with lines or find").WithFix("omit question, or omit lines and find")
	}
	return nil
}

// partOnly reports whether the request reads a part of a text and so does not continue a run.
func (r LoadRequest) partOnly() bool { return r.Lines != "" || r.Find != "" }

// selectKeys selects the requested variables. A single one is then the value of the source.
func (src *source) selectKeys(r LoadRequest, out *Loaded) error {
	if len(r.Keys) == 0 {
		return nil
	}
	all := src.vars
	if all == nil && json.Unmarshal(src.value, &all) != nil {
		return newInvalid("the value of the ref %s is not an object, so keys cannot select from it", r.Ref).WithFix("omit keys; lines, find or question select a part of it")
	}
	src.vars, out.Missing = checkpoint.SelectKeys(all, r.Keys)
	if r.partOnly() && len(src.vars) == 1 {
		for _, value := range src.vars {
			src.vars, src.value = nil, value
		}
	}
	return nil
}

// selectPart sets the context or the value of an answer to the requested part of a source.
func (s *Service) selectPart(ctx context.Context, c run.Caller, r LoadRequest, src *source, out *Loaded) error {
	size := 0
	for key, value := range src.vars {
		size += len(key) + len(value) + len(`"":,`)
	}
	if !r.partOnly() && (r.Budget > 0 || r.Question != "") {
		return s.reduceSource(ctx, c, Fit{Budget: cmp.Or(r.Budget, questionBudget), Question: r.Question}, src, out)
	}
	if !r.partOnly() && size > maxLoaded {
		return src.cutVariables(size, out)
	}
	whole, err := src.value, error(nil)
	if src.vars != nil {
		whole, err = encodeJSON(src.vars)
	}
	switch {
	case err != nil:
		return err
	case r.partOnly():
		return s.selectLines(r, whole, out)
	case src.vars == nil && len(whole) > maxLoaded:
		return s.selectLines(LoadRequest{Lines: "1-"}, whole, out)
	case src.vars == nil:
		out.Value = whole
		return nil
	}
	out.Context = whole
	return nil
}

// selectLines sets the value of an answer to lines of the text of a value. The note has the
// place of the lines, and how to continue if not all of them fit.
func (s *Service) selectLines(r LoadRequest, value json.RawMessage, out *Loaded) error {
	all := textpart.SplitLines(compress.PlainText(string(value)), maxLine)
	first, last := 1, len(all)
	var err error
	if r.Lines != "" {
		if first, last, err = textpart.ParseRange(r.Lines, len(all)); err != nil {
			return err
		}
	}
	list := all[first-1 : last]
	if r.Find != "" {
		if list, err = textpart.FindLines(list, first, r.Find); err != nil {
			return err
		}
	}
	kept := s.countFitting(list, r.Budget)
	switch {
	case r.Find == "" && kept < len(list):
		out.Note = fmt.Sprintf("lines %d-%d of %d; continue with lines \"%d-%d\"", first, first+kept-1, len(all), first+kept, last)
	case r.Find == "":
		out.Note = fmt.Sprintf("lines %d-%d of %d", first, last, len(all))
	case kept < len(list):
		out.Note = fmt.Sprintf("%d of %d matches; continue with a longer text, or with lines after the last match", kept, len(list))
	}
	out.Value, err = encodeJSON(strings.Join(list[:kept], ""))
	return err
}

// countFitting returns the number of the first lines that fit into a budget in tokens, or
// without a budget into maxLoaded bytes, but at least 1.
func (s *Service) countFitting(lines []string, budget int) int {
	tokens, size := noteTokens, 0
	for i, line := range lines {
		if size += len(line); budget > 0 {
			tokens += s.o.Counter.Count(line)
		}
		if i > 0 && (size > maxLoaded || budget > 0 && tokens > budget) {
			return i
		}
	}
	return len(lines)
}

// cutVariables sets the context of an answer to the smallest variables that together fit
// into maxLoaded bytes.
func (src *source) cutVariables(size int, out *Loaded) error {
	keys := slices.SortedFunc(maps.Keys(src.vars), func(a, b string) int {
		return cmp.Or(cmp.Compare(len(src.vars[a]), len(src.vars[b])), cmp.Compare(a, b))
	})
	kept, room := compress.Context{}, maxLoaded
	var left []compress.Omission
	for _, key := range keys {
		if room -= len(key) + len(src.vars[key]) + len(`"":,`); room >= 0 {
			kept[key] = src.vars[key]
			continue
		}
		left = append(left, compress.Omission{Key: key, Reason: "left out: too large", Ref: src.ref, Tokens: compress.Estimate(string(src.vars[key]))})
	}
	out.Omitted = groupOmissions(left, src.ref, maxKeyTokens)
	out.Note = strings.TrimPrefix(out.Note+fmt.Sprintf("; the context has %d kB, so only its smallest variables are returned (%d of %d): load others with ref and keys, or a part with lines, find, or question and budgetTokens",
		size/1000, len(kept), len(keys)), "; ")
	var err error
	out.Context, err = encodeJSON(kept)
	return err
}

// reduceSource sets the context or the value of an answer to a source that is reduced to a
// budget.
func (s *Service) reduceSource(ctx context.Context, c run.Caller, f Fit, src *source, out *Loaded) error {
	const single = "value"
	m := &material{values: src.vars, whole: src.ref, ref: func(string, []byte) string { return src.ref }}
	var err error
	switch {
	case src.vars == nil:
		m.values, m.single = compress.Context{single: src.value}, true
	case src.material != nil:
		if m, err = src.material(ctx, src.vars); err != nil {
			return err
		}
	}
	m.envelope = func(left []Omission) any {
		copied := *out
		copied.Omitted = left
		return copied
	}
	reduced, err := s.compressMaterial(ctx, m, f)
	if err != nil {
		return err
	}
	if src.vars == nil {
		out.Value = reduced.Context[single]
	} else if out.Context, err = encodeJSON(reduced.Context); err != nil {
		return err
	}
	out.Omitted = reduced.Omitted
	if reduced.Over != "" {
		out.Note = strings.TrimPrefix(out.Note+"; "+reduced.Over, "; ")
	}
	return nil
}
