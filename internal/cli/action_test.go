package cli

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"go.yaml.in/yaml/v3"
)

// action is the action of the repository, as far as the tests read it.
type action struct {
	Inputs map[string]struct {
		Description string
		Default     *string
		Required    bool
	}
	Runs struct {
		Using string
		Steps []actionStep
	}
}

type actionStep struct {
	Name, If, Shell, Run, Uses string
	Env                        map[string]string
}

func readAction() (a action, err error) {
	text, err := os.ReadFile("../../action.yml")
	if err != nil {
		return a, err
	}
	return a, yaml.Unmarshal(text, &a)
}

// runActionStep implements the command "action STEP": it runs a step of the action with the
// environment of the script, whose variables are those of the step.
func runActionStep(ts *testscript.TestScript, neg bool, args []string) {
	a, err := readAction()
	ts.Check(err)
	for _, step := range a.Runs.Steps {
		if len(args) != 1 || step.Name != args[0] {
			continue
		}
		file := filepath.Join(ts.Getenv("WORK"), "step.sh")
		ts.Check(os.WriteFile(file, []byte(step.Run), 0o600))
		if err := ts.Exec("bash", "--noprofile", "--norc", "-eo", "pipefail", file); (err != nil) != neg {
			ts.Fatalf("the step %s: %v", step.Name, err)
		}
		return
	}
	ts.Fatalf("usage: action STEP")
}

// TestAction checks that the action needs no permission, pins each action that it uses by a
// commit, and passes inputs to a shell only as variables.
func TestAction(t *testing.T) {
	t.Parallel()
	a, err := readAction()
	if err != nil {
		t.Fatal(err)
	}
	if a.Runs.Using != "composite" || len(a.Runs.Steps) == 0 {
		t.Fatalf("the action uses %q and has %d steps", a.Runs.Using, len(a.Runs.Steps))
	}
	for name, input := range a.Inputs {
		if input.Description == "" || input.Default == nil || input.Required {
			t.Errorf("the input %s has no description or default", name)
		}
	}
	expression, pinned := regexp.MustCompile(`^\$\{\{ inputs\.([a-z]+) \}\}$`), regexp.MustCompile(`^[\w./-]+@[0-9a-f]{40}$`)
	used := map[string]bool{}
	for _, step := range a.Runs.Steps {
		if step.Uses != "" && !pinned.MatchString(step.Uses) {
			t.Errorf("the step %s uses %s, which is not pinned by a commit", step.Name, step.Uses)
		}
		if strings.Contains(step.Run, "${{") {
			t.Errorf("the step %s has an expression in its script", step.Name)
		}
		if step.Uses == "" && step.Shell != "bash" {
			t.Errorf("the step %s has the shell %q", step.Name, step.Shell)
		}
		for name, value := range step.Env {
			m := expression.FindStringSubmatch(value)
			if m == nil || !strings.Contains(step.Run, "$"+name) && !strings.Contains(step.Run, "${"+name) {
				t.Errorf("the variable %s of the step %s is %s, or is not used", name, step.Name, value)
				continue
			}
			if _, ok := a.Inputs[m[1]]; !ok {
				t.Errorf("there is no input %s", m[1])
			}
			used[m[1]] = true
		}
	}
	for name := range a.Inputs {
		if !used[name] {
			t.Errorf("the input %s is not used", name)
		}
	}
	text, err := os.ReadFile("../../action.yml")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`uses: (\S+)`).FindAllStringSubmatch(string(text), -1) {
		if !pinned.MatchString(m[1]) && !strings.HasPrefix(m[1], "guideway-dev/guideway@") {
			t.Errorf("the example uses %s, which is not pinned by a commit", m[1])
		}
	}
}
