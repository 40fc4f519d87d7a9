package workflow_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/workflow"
)

// A gate names the roles and the number of the persons; anything else is an error with the
// allowed values.
func TestApproval(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]struct {
		approval *guideway.Approval
		found    string
	}{
		`"human"`:              {nil, ""},
		`{"by": ["approver"]}`: {&guideway.Approval{By: []guideway.Role{"approver"}}, ""},
		`{"by": ["operator", "admin"], "count": 2}`: {&guideway.Approval{By: []guideway.Role{"operator", "admin"}, Count: 2}, ""},
		`{"count": 2}`:                    {nil, "by"},
		`{"by": []}`:                      {nil, "at least one role"},
		`{"by": "approver"}`:              {nil, "list of roles"},
		`{"by": ["viewer"]}`:              {nil, "operator, approver, admin"},
		`{"by": ["aprover"]}`:             {nil, "approver"},
		`{"by": ["admin", "admin"]}`:      {nil, "list-repeats"},
		`{"by": ["admin"], "count": 0}`:   {nil, "from 1 to 10"},
		`{"by": ["admin"], "count": 1.5}`: {nil, "from 1 to 10"},
		`{"by": ["admin"], "count": 11}`:  {nil, "from 1 to 10"},
		`{"by": ["admin"], "count": "2"}`: {nil, "number"},
		`{"by": ["admin"], "persons": 2}`: {nil, "persons"},
		`"nobody"`:                        {nil, "human"},
		`7`:                               {nil, "string"},
	} {
		step := fmt.Sprintf(`{"id":"www","name":"W","description":"d","version":"1.0.0","steps":[{"id":"aaa","title":"A","prompt":"p","approval":%s}]}`, text)
		phase := fmt.Sprintf(`{"id":"w","title":"T","description":"d","version":"1.0.0","initialPhase":"a","phases":[{"id":"a","name":"A","checkpoints":[
			{"id":"ok","name":"OK","message":"Good?","approval":%s,"options":[{"id":"yes","label":"Yes"}]}]}]}`, text)
		for _, document := range []string{step, phase} {
			d, found := workflow.Parse("w.json", []byte(document))
			message := fmt.Sprintf("%+v", found)
			if want.found != "" {
				if d != nil || !strings.Contains(message, want.found) {
					t.Errorf("%s: %s", text, message)
				}
				continue
			}
			if d == nil {
				t.Errorf("%s: %s", text, message)
				continue
			}
			var person bool
			var got *guideway.Approval
			if d.Steps != nil {
				person, got = d.Steps.Steps[0].Person, d.Steps.Steps[0].Approval
			} else {
				person, got = d.Phases.Phases[0].Checkpoints[0].Person, d.Phases.Phases[0].Checkpoints[0].Approval
			}
			if diff := cmp.Diff(want.approval, got); diff != "" || !person {
				t.Errorf("%s: person %v, %s", text, person, diff)
			}
		}
	}
}
