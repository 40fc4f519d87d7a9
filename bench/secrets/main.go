// Package secrets measures the detector of secrets on labeled lines: how many of its
// warnings are right, and how many of the planted credentials it warns of and redacts. The
// lines are generated, always the same ones, from kinds and templates; none is real.
package secrets

import (
	"context"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/guideway-dev/guideway/internal/platform/secret"
)

// Targets of the measurement. Digests, UUIDs and encoded texts must cause no warning at all.
const (
	lines         = 2000
	wantPrecision = 0.95
	wantRecall    = 0.98
)

// tally counts the lines of a kind.
type tally struct {
	lines, warned, redacted int
	missed                  string
}

// Run generates the lines and prints precision and recall, in all and by kind.
func Run(_ context.Context, args []string, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("secrets", flag.ContinueOnError)
	flags.SetOutput(stderr)
	seed := flags.Uint64("seed", 1, "the `number` from which the values are generated")
	personal := flags.Bool("personal", false, "measure personal data instead of credentials")
	show := flags.Bool("show", false, "print the lines instead")
	if err := flags.Parse(args); err != nil {
		return err
	}
	positives, kinds := credentials(), map[string]*tally{}
	if *personal {
		positives = personalData()
	}
	detector, list := secret.Detector{Personal: *personal}, generateLines(*seed, positives)
	scanner := secret.NewScanner(detector)
	var positive, negative tally
	for _, l := range list {
		if *show {
			fmt.Fprintf(stdout, "%t\t%s\t%s\n", l.secret, l.kind, l.text)
			continue
		}
		kind, all := kinds[l.kind], &negative
		if kind == nil {
			kind = &tally{}
			kinds[l.kind] = kind
		}
		if l.secret {
			all = &positive
		}
		warned := len(scanner.Scan(map[string]any{"text": l.text})) > 0
		clean, _ := detector.Redact(l.text, "")
		redacted := clean != l.text
		if l.secret { // a redaction must remove the value
			redacted = !strings.Contains(clean, l.value)
		}
		if warned != l.secret {
			kind.missed = l.text
		}
		kind.add(warned, redacted)
		all.add(warned, redacted)
	}
	if *show {
		return nil
	}
	printTallies(stdout, positive, negative, kinds, slices.Concat(positives, innocents()))
	return nil
}

func (t *tally) add(warned, redacted bool) {
	t.lines++
	if warned {
		t.warned++
	}
	if redacted {
		t.redacted++
	}
}

func printTallies(out io.Writer, positive, negative tally, kinds map[string]*tally, order []kind) {
	part := func(n, of int) float64 { return float64(n) / float64(max(of, 1)) }
	row := func(of string, hit, wrong int) {
		fmt.Fprintf(out, "| %s | %.3f | %.3f |\n", of, part(hit, hit+wrong), part(hit, positive.lines))
	}
	fmt.Fprintf(out, "%d lines with a secret, %d without\n\n| | precision | recall |\n|---|---|---|\n", positive.lines, negative.lines)
	fmt.Fprintf(out, "| target of warnings | %.2f | %.2f |\n", wantPrecision, wantRecall)
	row("warnings", positive.warned, negative.warned)
	row("redaction", positive.redacted, negative.redacted)
	fmt.Fprintln(out, "\n| kind | lines | warned | redacted | last wrong warning or miss |\n|---|---|---|---|---|")
	for _, k := range order {
		if t := kinds[k.name]; t != nil {
			fmt.Fprintf(out, "| %s | %d | %d | %d | %s |\n", k.name, t.lines, t.warned, t.redacted, strings.ReplaceAll(t.missed, "|", `\|`))
		}
	}
}

// line is a labeled text; value is its secret.
type line struct {
	kind, text, value string
	secret            bool
}

// generateLines returns the lines, half of them with a secret. Each kind has as many lines
// as the others of its half, with its templates in turn.
func generateLines(seed uint64, positives []kind) []line {
	random := rand.New(rand.NewPCG(seed, 19)) //nolint:gosec // the same lines each time
	var list []line
	for _, half := range []struct {
		kinds  []kind
		secret bool
	}{{positives, true}, {innocents(), false}} {
		for i := range lines / 2 {
			k := half.kinds[i%len(half.kinds)]
			value := k.value(random)
			template := k.templates[i/len(half.kinds)%len(k.templates)]
			list = append(list, line{k.name, strings.ReplaceAll(template, "§", value), value, half.secret})
		}
	}
	return list
}
