package definition_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/guideway-dev/guideway/internal/definition"
)

// TestHostileFilesAreCheap reads a mebibyte of what is worst for a reader that
// compares everything with everything, which takes minutes and runs into the
// limit of the test binary. What each takes is logged.
func TestHostileFilesAreCheap(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("what is cheap is dear with the race detector, and one goroutine has no races")
	}
	for name, text := range map[string]string{
		"one unknown key": "{" + strings.Repeat(`"abcdefghijklmnopqrstu":1,`, 40_000) + `"z":1}`,
		"unknown keys":    "{" + many(40_000, `"abcdefghij%d":1`) + "}",
		"variables":       hostile(9_000, `{"id":"s%[1]d-s","title":"t","prompt":"v%[1]d","runCondition":{"var":"x%[1]d"}}`),
		"loops": hostile(4_000, `{"id":"s%[1]d-s","type":"loop","title":"t","loop":{"type":"while","condition":{"var":"z%[1]d"},"maxIterations":1000,"iterationVar":"v%[1]d"},
			"body":[{"id":"b%[1]d-s","title":"t","prompt":"p","runCondition":{"var":"v%[1]d","gt":1000}}]}`),
		"bodies that are not there": hostile(5_000, `{"id":"s%[1]d-s","type":"loop","title":"t","loop":{"type":"for","count":1,"maxIterations":1},"body":"x%[1]d-x"}`),
		"functions":                 hostile(7_000, `{"id":"s%[1]d-s","title":"t","prompt":"p","functionDefinitions":[{"name":"f%[1]d","definition":"d"}]}`),
		"conditions":                hostile(1, `{"id":"s%d-s","title":"t","prompt":"p","runCondition":{"and":[{"var":"a"}`+strings.Repeat(`,{"var":"b","contains":"x"}`, 20_000)+`]}}`),
		"phases":                    phased(8_000, `{"id":"p%[1]d","name":"n","transitions":[{"to":"p%[1]d"},{"to":"nowhere%[1]d"}]}`),
		"ways of a phase":           phased(1, `{"id":"p%d","name":"n","transitions":[`+many(20_000, `{"to":"p0","isDefault":true}`)+`]}`),
		"ways with conditions":      phased(6_000, `{"id":"p%[1]d","name":"n","transitions":[{"to":"p0","condition":{"type":"simple","variable":"v%[1]d","operator":"==","value":1}}]}`),
		"ways in a long row": phased(1, `{"id":"p%d","name":"n","transitions":[`+
			many(9_000, `{"to":"p0","condition":{"type":"simple","variable":"v%d","operator":"==","value":1}}`)+`]}`),
		"operands": phased(1, `{"id":"p%d","name":"n","transitions":[{"to":"p0","condition":{"type":"and","conditions":[`+
			many(10_000, `{"type":"simple","variable":"v%d","operator":"==","value":1}`)+`]}}]}`),
		"values": phased(1, `{"id":"p%d","name":"n","entryActions":[`+many(10_000, `{"action":"set","target":"v","value":%d}`)+`],
			"transitions":[`+many(4_000, `{"to":"p0","condition":{"type":"simple","variable":"v","operator":"==","value":%d}}`)+`]}`),
		"skips": phased(900, `{"id":"p%[1]d","name":"n","transitions":[{"to":"p0","isDefault":true}],"checkpoints":[{"id":"c","name":"n","message":"m","options":[
			{"id":"o","label":"l","effect":{"skipPhases":[`+many(90, `"p%d"`)+`]}}]}]}`),
		"written and read": phased(2_500, `{"id":"p%[1]d","name":"n","entryActions":[{"action":"set","target":"v%[1]d","value":1}],
			"transitions":[{"to":"p%[1]d","condition":{"type":"simple","variable":"v1%[1]d","operator":"==","value":1}}]}`),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, file := range []string{"x.json", "x.yaml"} {
				begin := time.Now()
				_, found := definition.Check(file, []byte(text))
				t.Logf("%s: %d bytes took %v", file, len(text), time.Since(begin))
				if len(found) == 0 || len(found) > 202 {
					t.Errorf("%s: %d findings", file, len(found))
				}
			}
		})
	}
}

// many repeats a format with numbers, with commas between.
func many(n int, format string) string {
	parts := make([]string, n)
	for i := range parts {
		parts[i] = fmt.Sprintf(format, i)
	}
	return strings.Join(parts, ",")
}

// hostile is a workflow of many steps.
func hostile(n int, format string) string {
	return `{"id":"a-flow","name":"n","description":"d","version":"1.0.0","steps":[` + many(n, format) + `]}`
}

// phased is a workflow of many phases.
func phased(n int, format string) string {
	return `{"id":"a-flow","version":"1.0.0","title":"t","initialPhase":"p0","phases":[` + many(n, format) + `]}`
}
