package workflow_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/guideway-dev/guideway/internal/workflow"
)

// TestHostileFilesAreFast parses documents of a mebibyte for which a parser with quadratic
// comparisons would take minutes and exceed the time limit of the test binary. It logs the
// time that each document takes.
func TestHostileFilesAreFast(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("too slow with the race detector, and the code uses only one goroutine")
	}
	for name, text := range map[string]string{
		"one unknown key": "{" + strings.Repeat(`"abcdefghijklmnopqrstu":1,`, 40_000) + `"z":1}`,
		"unknown keys":    "{" + repeatFormat(40_000, `"abcdefghij%d":1`) + "}",
		"variables":       manySteps(9_000, `{"id":"s%[1]d-s","title":"t","prompt":"v%[1]d","runCondition":{"var":"x%[1]d"}}`),
		"loops": manySteps(4_000, `{"id":"s%[1]d-s","type":"loop","title":"t","loop":{"type":"while","condition":{"var":"z%[1]d"},"maxIterations":1000,"iterationVar":"v%[1]d"},
			"body":[{"id":"b%[1]d-s","title":"t","prompt":"p","runCondition":{"var":"v%[1]d","gt":1000}}]}`),
		"unknown loop bodies":         manySteps(5_000, `{"id":"s%[1]d-s","type":"loop","title":"t","loop":{"type":"for","count":1,"maxIterations":1},"body":"x%[1]d-x"}`),
		"functions":                   manySteps(7_000, `{"id":"s%[1]d-s","title":"t","prompt":"p","functionDefinitions":[{"name":"f%[1]d","definition":"d"}]}`),
		"conditions":                  manySteps(1, `{"id":"s%d-s","title":"t","prompt":"p","runCondition":{"and":[{"var":"a"}`+strings.Repeat(`,{"var":"b","contains":"x"}`, 20_000)+`]}}`),
		"phases":                      manyPhases(8_000, `{"id":"p%[1]d","name":"n","transitions":[{"to":"p%[1]d"},{"to":"nowhere%[1]d"}]}`),
		"many transitions":            manyPhases(1, `{"id":"p%d","name":"n","transitions":[`+repeatFormat(20_000, `{"to":"p0","isDefault":true}`)+`]}`),
		"transitions with conditions": manyPhases(6_000, `{"id":"p%[1]d","name":"n","transitions":[{"to":"p0","condition":{"type":"simple","variable":"v%[1]d","operator":"==","value":1}}]}`),
		"long chain of phases": manyPhases(1, `{"id":"p%d","name":"n","transitions":[`+
			repeatFormat(9_000, `{"to":"p0","condition":{"type":"simple","variable":"v%d","operator":"==","value":1}}`)+`]}`),
		"operands": manyPhases(1, `{"id":"p%d","name":"n","transitions":[{"to":"p0","condition":{"type":"and","conditions":[`+
			repeatFormat(10_000, `{"type":"simple","variable":"v%d","operator":"==","value":1}`)+`]}}]}`),
		"values": manyPhases(1, `{"id":"p%d","name":"n","entryActions":[`+repeatFormat(10_000, `{"action":"set","target":"v","value":%d}`)+`],
			"transitions":[`+repeatFormat(4_000, `{"to":"p0","condition":{"type":"simple","variable":"v","operator":"==","value":%d}}`)+`]}`),
		"skips": manyPhases(900, `{"id":"p%[1]d","name":"n","transitions":[{"to":"p0","isDefault":true}],"checkpoints":[{"id":"c","name":"n","message":"m","options":[
			{"id":"o","label":"l","effect":{"skipPhases":[`+repeatFormat(90, `"p%d"`)+`]}}]}]}`),
		"variables written and read": manyPhases(2_500, `{"id":"p%[1]d","name":"n","entryActions":[{"action":"set","target":"v%[1]d","value":1}],
			"transitions":[{"to":"p%[1]d","condition":{"type":"simple","variable":"v1%[1]d","operator":"==","value":1}}]}`),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, file := range []string{"x.json", "x.yaml"} {
				begin := time.Now()
				_, found := workflow.Check(file, []byte(text))
				t.Logf("%s: %d bytes took %v", file, len(text), time.Since(begin))
				if len(found) == 0 || len(found) > 202 {
					t.Errorf("%s: %d findings", file, len(found))
				}
			}
		})
	}
}

// repeatFormat joins a format with the numbers from 0 to n-1 by commas.
func repeatFormat(n int, format string) string {
	parts := make([]string, n)
	for i := range parts {
		parts[i] = fmt.Sprintf(format, i)
	}
	return strings.Join(parts, ",")
}

// manySteps returns a workflow of n steps.
func manySteps(n int, format string) string {
	return `{"id":"a-flow","name":"n","description":"d","version":"1.0.0","steps":[` + repeatFormat(n, format) + `]}`
}

// manyPhases returns a workflow of n phases.
func manyPhases(n int, format string) string {
	return `{"id":"a-flow","version":"1.0.0","title":"t","initialPhase":"p0","phases":[` + repeatFormat(n, format) + `]}`
}
