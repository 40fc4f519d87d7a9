package checksfile

import (
	"fmt"
	"slices"
	"strings"

	"github.com/guideway-dev/guideway/internal/platform/lists"
	"github.com/guideway-dev/guideway/internal/platform/visible"
	"github.com/guideway-dev/guideway/internal/workflow/doc"
)

// header is the beginning of a proposed file.
const header = `# yaml-language-server: $schema=https://guideway.dev/schemas/checks.schema.json
#
# The checks of this project: commands that Guideway executes for itself, so that a step is
# proved and not only claimed. Workflows use the names test, lint, build, format,
# one-test and protected-tests.
#
# A check runs with the permissions of the Guideway process. A person approves it before its first
# execution, and again after a change of this file or of a file that defines the command,
# such as a Makefile or the scripts of package.json:
#
#   guideway checks approve
#
# argv is the program and its arguments; no shell reads them. Other fields of a check:
#
#   dir: web                 the directory, below this project
#   env: [GOFLAGS]           variables that the command receives, besides PATH and HOME
#   timeout: 5m              the time limit, at most 1h
#   exitCode: 0              the expected exit code
#   matches: "^ok"           a pattern that the output must match; excludes is the opposite
#   files: [scripts/run.sh]  further files that define the command
#   cache: tree              reuse a result while no file changed
#   sandbox: true            no writes outside the project, no network (network: true allows it)
#
# A check with protect in place of argv requires that the files that match equal the commit at
# the start of the run; allowNew: true allows new files. A person can approve a change.
`

// example is the rest of a proposed file without checks.
const example = `
checks: {}
#  test:
#    description: run the tests
#    argv: [make, test]
#    timeout: 10m
`

// Text returns the proposed file.
func (p *Proposal) Text() string {
	var b strings.Builder
	b.WriteString(header)
	comment := func(format string, args ...any) {
		for line := range strings.SplitSeq(fmt.Sprintf(format, args...), "\n") {
			b.WriteString("# " + visible.EscapeLine(line) + "\n")
		}
	}
	if len(p.Notes) > 0 || len(p.Elsewhere) > 0 {
		b.WriteString("#\n")
	}
	for _, note := range p.Notes {
		comment("%s", note)
	}
	if len(p.Elsewhere) > 0 {
		comment("Only the root was examined. A check of one of these projects needs another name and \"dir\":")
		for _, name := range p.Elsewhere {
			b.WriteString("#   " + visible.EscapeLine(name) + "\n")
		}
	}
	if len(p.Checks) == 0 {
		b.WriteString(example)
		return b.String()
	}
	b.WriteString("\nchecks:\n")
	for i := range p.Checks {
		p.Checks[i].write(&b)
	}
	return b.String()
}

// Words returns what the check requires: its command, or the files that it protects.
func (c *ProposedCheck) Words() string {
	if len(c.Protect) > 0 {
		return "unchanged " + strings.Join(c.Protect, ", ")
	}
	return strings.Join(c.template(), " ")
}

// template returns the command with the placeholder of its parameter.
func (c *ProposedCheck) template() []string {
	argv := slices.Clone(c.Argv)
	if c.Parameter != "" {
		argv[len(argv)-1] = "{{" + c.Parameter + "}}"
	}
	return argv
}

// write writes the check in YAML.
func (c *ProposedCheck) write(b *strings.Builder) {
	if len(c.Protect) > 0 {
		fmt.Fprintf(b, "  # for %s\n  %s:\n    description: %s\n    protect: [%s]\n    allowNew: true\n", visible.EscapeLine(c.From), c.Name, quoteYAML(c.Description), quoteWordsYAML(c.Protect))
		return
	}
	fmt.Fprintf(b, "  # from %s\n  %s:\n    description: %s\n    argv: [%s]\n", visible.EscapeLine(c.From), c.Name, quoteYAML(c.Description), quoteWordsYAML(c.template()))
	if c.Parameter != "" && c.Argv[len(c.Argv)-1] == "" {
		fmt.Fprintf(b, "    parameters:\n      %s: {pattern: %s}\n", c.Parameter, quoteYAML(c.Pattern))
	} else if c.Parameter != "" {
		fmt.Fprintf(b, "    # A rule of a workflow may pass another value: with: {%s: ...}\n    parameters:\n      %s: {default: %s, pattern: %s}\n",
			c.Parameter, c.Parameter, quoteYAML(c.Argv[len(c.Argv)-1]), quoteYAML(c.Pattern))
	}
	if c.Excludes != "" {
		fmt.Fprintf(b, "    excludes: %s\n", quoteYAML(c.Excludes))
	}
	fmt.Fprintf(b, "    timeout: %s\n", c.Timeout)
}

// quoteWordsYAML returns texts as the elements of a YAML list.
func quoteWordsYAML(list []string) string {
	words := lists.Map(list, quoteYAML)
	return strings.Join(words, ", ")
}

// plainYAML matches a text that needs no quotes in a YAML list.
var plainYAML = compileOnce(`^[A-Za-z./][A-Za-z0-9./_-]*( [A-Za-z./][A-Za-z0-9./_-]*)*$`)

// quoteYAML returns a text as a YAML string.
func quoteYAML(text string) string {
	plain := plainYAML().MatchString(text) && !slices.Contains([]string{"true", "false", "null", ".", ".inf", ".nan"}, strings.ToLower(text))
	if plain {
		return text
	}
	// A JSON string is a YAML string.
	return string(doc.Canonical(&doc.Node{Kind: doc.String, Text: text}))
}
