package validate_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/validate"
)

const release = `{"id":"release","version":"1.0.0","title":"Release","initialPhase":"ship","phases":[{"id":"ship","name":"Ship","steps":[{"id":"tag","name":"Tag"}]}]}`

func TestBothForms(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, text, kind string
		dialect          guideway.Dialect
		valid            bool
	}{
		{"phases", release, "workflow", guideway.DialectPhases, true},
		{"steps", "id: small\nname: S\ndescription: d\nversion: 1.0.0\nsteps:\n  - {id: one, title: One, prompt: Do.}\n", "workflow", guideway.DialectSteps, true},
		{"a condition", `{"type":"simple","variable":"x","operator":"exists"}`, "condition", guideway.DialectPhases, true},
		{"an unknown phase", strings.Replace(release, `"initialPhase":"ship"`, `"initialPhase":"nope"`, 1), "", "", false},
		{"no JSON", "{", "", "", false},
		{"nothing", "", "", "", false},
	}
	for _, tt := range tests {
		safe := validate.Safe([]byte(tt.text), validate.Options{})
		d, err := validate.Parse([]byte(tt.text), validate.Options{})
		if safe.Valid() != tt.valid || (err == nil) != tt.valid {
			t.Errorf("%s: valid %v, %v; want %v", tt.name, safe.Valid(), err, tt.valid)
			continue
		}
		if tt.valid {
			if d.Kind != tt.kind || d.Dialect != tt.dialect || d.Hash == "" || len(d.Canonical) == 0 {
				t.Errorf("%s: %+v", tt.name, d)
			}
			continue
		}
		var bad *validate.Error
		if !errors.As(err, &bad) || len(bad.Diagnostics) == 0 || !strings.Contains(err.Error(), bad.Diagnostics[0].Message) {
			t.Errorf("%s: the error is %v", tt.name, err)
		}
	}
}

func TestTheKindCanBeForced(t *testing.T) {
	t.Parallel()
	if r := validate.Safe([]byte(release), validate.Options{Dialect: guideway.DialectPhases, Kind: "activity"}); r.Valid() {
		t.Error("a workflow is accepted as an activity")
	}
	for _, kind := range []string{"workflow", "condition", "state", "skill", "activity"} {
		if len(validate.Schema(guideway.DialectPhases, kind)) == 0 {
			t.Errorf("there is no schema of a %s", kind)
		}
	}
}

func ExampleSafe() {
	r := validate.Safe([]byte(`{"id":"release","version":"v1"}`), validate.Options{File: "release.json", Dialect: guideway.DialectPhases, Kind: "workflow"})
	fmt.Println(r.Valid(), len(r.Diagnostics) > 0)
	// Output: false true
}
