// Package recall measures which planted facts a reduced context keeps: a quarter of its
// tokens, and a tenth with a question, next to other methods of the same size.
package recall

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/guideway-dev/guideway/bench/cheats"
	"github.com/guideway-dev/guideway/bench/measure"
	"github.com/guideway-dev/guideway/internal/contexts/compress"
	"github.com/guideway-dev/guideway/internal/machine/driver"
	"github.com/guideway-dev/guideway/internal/machine/llm"
)

const (
	planted      = 20
	turns        = 136
	contextBytes = 50_000
	// seeds is the number of contexts of each kind and shape.
	seeds = 10
)

// bench is one run of the measurement.
type bench struct {
	measure.Options
	counter compress.Counter
	model   *driver.SelectedModel
	misses  bool
	// lost counts the facts that a reduction lost, by setting, kind and text.
	lost map[string]int
}

// Run measures and prints the tables.
func Run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	b := &bench{Options: measure.Options{Stdout: stdout, Stderr: stderr}, counter: compress.NewTokenizer(), lost: map[string]int{}}
	flags := flag.NewFlagSet("recall", flag.ContinueOnError)
	flags.BoolVar(&b.misses, "misses", false, "print the kinds of the lost facts")
	remove, err := b.Parse(flags, args)
	if err != nil {
		return err
	}
	defer remove()
	note := ""
	if model, err := cheats.OpenModel(ctx, "configured"); err == nil {
		b.model = &model
	} else {
		note = "A model's summary was not measured: " + err.Error() + "\n"
	}
	fmt.Fprintf(stdout, "Kept of %d planted facts, the mean over %d contexts of about %d kB, and the share of contexts that meet the target: 19 of 20 at 4x, 15 of 20 at 10x. The wordings of the held-out facts were not used for tuning. The other sentences are routine texts of each kind, in real prose those of the documentation, which has no target.\n%s\n", planted, b.Pick(seeds, 2), contextBytes/1000, note)
	for heldOut, title := range []string{"tuned", "held out"} {
		text, err := b.measureSet(ctx, heldOut)
		if err != nil {
			return err
		}
		fmt.Fprintf(stdout, "%s:\n\n%s\n", title, text)
	}
	if b.misses {
		for _, key := range slices.SortedFunc(maps.Keys(b.lost), func(x, y string) int { return b.lost[y] - b.lost[x] }) {
			fmt.Fprintf(stdout, "%5d %s\n", b.lost[key], key)
		}
	}
	return nil
}

// setting is a factor of reduction and a question.
type setting struct {
	name   string
	ratio  float64
	target int
}

func settings() []setting {
	return []setting{{"4x", 4, 19}, {"4x, general", 4, 19}, {"10x, general", 10, 15}, {"10x, specific", 10, 15}}
}

// measureSet measures all kinds and shapes of contexts.
func (b *bench) measureSet(ctx context.Context, heldOut int) (string, error) {
	var out strings.Builder
	w := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
	fmt.Fprint(w, "context\tshape\t")
	for _, s := range settings() {
		fmt.Fprintf(w, "%s\t", s.name)
	}
	fmt.Fprintln(w, "4x: head+tail\trandom\tmodel\t10x: head+tail\trandom\tmodel\t")
	for _, kind := range []string{"debugging", "design", "log", "research", "support", "real prose"} {
		for shape := range 3 {
			if err := b.measureKind(ctx, w, kind, shape, heldOut); err != nil {
				return "", err
			}
		}
	}
	_ = w.Flush() // A builder does not fail.
	return out.String(), nil
}

// measureKind measures one kind and shape of contexts, and prints a row.
func (b *bench) measureKind(ctx context.Context, w io.Writer, kind string, shape, heldOut int) error {
	n := b.Pick(seeds, 2)
	kept, met := make([]int, len(settings())), make([]int, len(settings()))
	others := map[string]int{}
	shapes := []string{"text", "messages", "variables"}
	for seed := range n {
		r := rand.New(rand.NewPCG(uint64(1000*heldOut+seed), uint64(len(kind)))) //nolint:gosec // G404: reproducible contexts
		facts := makeFacts(r, kind, heldOut)
		list := makeTurns(r, kind, facts, contextBytes)
		for i, s := range settings() {
			found, err := b.countRecalled(kind, s, list, facts, shapes[shape])
			if err != nil {
				return err
			}
			kept[i] += found
			if found >= s.target {
				met[i]++
			}
		}
		if shape > 0 {
			continue
		}
		for _, ratio := range []int{4, 10} {
			for name, text := range b.otherMethods(ctx, r, strings.Join(list, "\n"), ratio, kind) {
				others[fmt.Sprint(ratio, name)] += countFacts(facts, text)
			}
		}
	}
	fmt.Fprintf(w, "%s\t%s\t", kind, shapes[shape])
	for i := range kept {
		fmt.Fprintf(w, "%.1f (%d%%)\t", float64(kept[i])/float64(n), 100*met[i]/n)
	}
	for _, ratio := range []int{4, 10} {
		for _, name := range []string{"head+tail", "random", "model"} {
			if found, ok := others[fmt.Sprint(ratio, name)]; ok {
				fmt.Fprintf(w, "%.1f\t", float64(found)/float64(n))
			} else {
				fmt.Fprint(w, "-\t")
			}
		}
	}
	fmt.Fprintln(w)
	return nil
}

// makeContext returns turns as a context of the shape.
func makeContext(list []string, shape string) (compress.Context, error) {
	values := map[string]any{}
	messages := make([]any, len(list))
	for i, text := range list {
		messages[i] = map[string]any{"role": []string{"user", "assistant", "tool"}[i%3], "content": text}
		values[fmt.Sprintf("turn%03d", i)] = text
	}
	switch shape {
	case "text":
		values = map[string]any{"transcript": strings.Join(list, "\n")}
	case "messages":
		values = map[string]any{"messages": messages}
	}
	c := compress.Context{}
	for key, value := range values {
		text, err := json.Marshal(value)
		if err != nil {
			return nil, fmt.Errorf("encode a context: %w", err)
		}
		c[key] = text
	}
	return c, nil
}

// countRecalled reduces a context and returns the number of recalled facts. With specific
// questions it asks for each fact.
func (b *bench) countRecalled(kind string, s setting, list []string, facts []fact, shape string) (int, error) {
	c, err := makeContext(list, shape)
	if err != nil {
		return 0, err
	}
	items := compress.Items(c, compress.NewClassifier(compress.Hints{}), b.counter)
	stems := compress.NewStemCache()
	reduce := func(question string) string {
		result := compress.Compress(items, compress.Options{Ratio: s.ratio, Counter: b.counter, Question: question, Stems: stems})
		if result.TokensAfter > result.Budget {
			err = errors.Join(err, fmt.Errorf("%d tokens, budget %d: %s", result.TokensAfter, result.Budget, result.OverReason))
		}
		var all strings.Builder
		for _, value := range result.Context {
			all.Write(value)
		}
		return all.String()
	}
	text, found := "", 0
	if strings.HasSuffix(s.name, "general") {
		text = reduce(generalQuestion(kind))
	} else if !strings.HasSuffix(s.name, "specific") {
		text = reduce("")
	}
	for _, f := range facts {
		kept := text
		if text == "" {
			kept = reduce(f.question)
		}
		if f.isRecalled(kept) {
			found++
		} else {
			b.lost[s.name+" "+kind+" "+f.kind]++
		}
	}
	return found, err
}

func countFacts(facts []fact, text string) (found int) {
	for _, f := range facts {
		if f.isRecalled(text) {
			found++
		}
	}
	return found
}

// otherMethods returns the texts of other methods of the same size.
func (b *bench) otherMethods(ctx context.Context, r *rand.Rand, text string, ratio int, kind string) map[string]string {
	half := len(text) / ratio / 2
	sentences := strings.FieldsFunc(text, func(r rune) bool { return r == '\n' })
	sentences = slices.Collect(func(yield func(string) bool) {
		for _, line := range sentences {
			for s := range strings.SplitAfterSeq(line, ". ") {
				if !yield(s) {
					return
				}
			}
		}
	})
	random, spent := []string{}, 0
	for _, i := range r.Perm(len(sentences)) {
		if spent += len(sentences[i]); spent > len(text)/ratio {
			break
		}
		random = append(random, sentences[i])
	}
	out := map[string]string{"head+tail": text[:half] + text[len(text)-half:], "random": strings.Join(random, "\n")}
	if b.model == nil {
		return out
	}
	prompt := fmt.Sprintf("Summarize this %s in at most %d tokens. Keep causes, decisions, demands, numbers, names, tickets, open questions and failed attempts.\n\n%s", kind, b.counter.Count(text)/ratio, text)
	response, err := b.model.Complete(ctx, llm.Request{Model: b.model.Name, MaxTokens: b.counter.Count(text) / ratio, Messages: []llm.Message{{Role: llm.User, Content: prompt}}}, nil)
	if err != nil {
		fmt.Fprintln(b.Stderr, "recall: the model did not answer:", err)
		return out
	}
	out["model"] = response.Message.Content
	return out
}
