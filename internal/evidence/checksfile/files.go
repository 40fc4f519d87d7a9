package checksfile

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"unicode/utf8"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/platform/digest"
	"github.com/guideway-dev/guideway/internal/platform/safeopen"
	"github.com/guideway-dev/guideway/internal/workflow/criteria"
)

const (
	// maxDefining is the maximum size of a file that defines a command, maxProgram that of a
	// program in the workspace.
	maxDefining = 1 << 20
	maxProgram  = 1 << 30
	// maxFiles is the maximum number of files that define one command.
	maxFiles = 100
)

// DefiningFile is a file of the workspace that defines the command of a check.
type DefiningFile struct {
	// Path is the path below the workspace, with slashes.
	Path string `json:"path"`
	// Hash is the SHA-256 of the content that defines the command, or "" if a listed file
	// does not exist.
	Hash string `json:"hash,omitempty"`
	// Text is the content that defines the command; "" if it is not text. Left describes
	// the parts of the file that do not define it.
	Text string `json:"-"`
	Left string `json:"left,omitempty"`
	// Link is the target of a program that is a symbolic link out of the workspace.
	Link string `json:"link,omitempty"`
	// Bytes is the size of the content.
	Bytes int64 `json:"bytes"`
}

// toolFiles are the files that each tool reads its commands and settings from. A tool is
// recognized by the base name of a word of the command.
var toolFiles = map[string][]string{
	"make": {"GNUmakefile", "makefile", "Makefile"}, "gmake": {"GNUmakefile", "makefile", "Makefile"},
	"npm": {"package.json", ".npmrc"}, "npx": {"package.json", ".npmrc"}, "node": {"package.json"},
	"pnpm": {"package.json", ".npmrc", "pnpm-workspace.yaml", ".pnpmfile.cjs"}, "pnpx": {"package.json", ".npmrc"},
	"yarn": {"package.json", ".npmrc", ".yarnrc", ".yarnrc.yml"}, "corepack": {"package.json"},
	"bun": {"package.json", "bunfig.toml"}, "bunx": {"package.json", "bunfig.toml"}, "deno": {"deno.json", "deno.jsonc"},
	"jest":   {"jest.config.js", "jest.config.ts", "jest.config.mjs", "jest.config.cjs", "jest.config.json"},
	"vitest": {"vitest.config.ts", "vitest.config.js", "vitest.config.mjs", "vitest.config.mts", "vite.config.ts", "vite.config.js", "vite.config.mjs"},
	"mocha":  {".mocharc.js", ".mocharc.cjs", ".mocharc.yaml", ".mocharc.yml", ".mocharc.json", ".mocharc.jsonc"},
	"eslint": {
		"eslint.config.js", "eslint.config.mjs", "eslint.config.cjs", "eslint.config.ts",
		".eslintrc", ".eslintrc.js", ".eslintrc.cjs", ".eslintrc.yaml", ".eslintrc.yml", ".eslintrc.json", ".eslintignore",
	},
	"prettier": {".prettierrc", ".prettierrc.json", ".prettierrc.yaml", ".prettierrc.yml", ".prettierrc.js", "prettier.config.js", "prettier.config.mjs", ".prettierignore"},
	"tsc":      {"tsconfig.json"}, "biome": {"biome.json", "biome.jsonc"},
	"pytest": {"pytest.ini", ".pytest.ini", "pyproject.toml", "tox.ini", "setup.cfg"},
	"tox":    {"tox.ini", "tox.toml", "pyproject.toml", "setup.cfg"}, "nox": {"noxfile.py"},
	"ruff": {"ruff.toml", ".ruff.toml", "pyproject.toml"}, "black": {"pyproject.toml"}, "flake8": {".flake8", "setup.cfg", "tox.ini"},
	"mypy": {"mypy.ini", ".mypy.ini", "pyproject.toml", "setup.cfg"}, "pyright": {"pyrightconfig.json", "pyproject.toml"},
	"uv": {"pyproject.toml", "uv.toml"}, "poetry": {"pyproject.toml", "poetry.toml"}, "pdm": {"pyproject.toml"}, "hatch": {"pyproject.toml", "hatch.toml"},
	"cargo":         {"Cargo.toml", ".cargo/config.toml", ".cargo/config", "rust-toolchain", "rust-toolchain.toml", "clippy.toml", ".clippy.toml", "rustfmt.toml", ".rustfmt.toml"},
	"golangci-lint": {".golangci.yml", ".golangci.yaml", ".golangci.toml", ".golangci.json"},
	"just":          {"justfile", "Justfile", ".justfile"}, "task": {"Taskfile.yml", "Taskfile.yaml", "taskfile.yml", "taskfile.yaml"},
	"rake": {"Rakefile", "rakefile"}, "rspec": {".rspec"}, "mvn": {"pom.xml", ".mvn/maven.config", ".mvn/jvm.config"}, "mvnw": {"pom.xml", ".mvn/wrapper/maven-wrapper.properties"},
	"gradle": {"build.gradle", "build.gradle.kts", "settings.gradle", "settings.gradle.kts"}, "gradlew": {"build.gradle", "build.gradle.kts", "settings.gradle", "settings.gradle.kts", "gradle/wrapper/gradle-wrapper.properties"},
}

// interpreters are the programs whose first argument is a script.
var interpreters = compileOnce(`^(sh|bash|dash|zsh|ksh|fish|source|\.|node|deno|bun|tsx|ts-node|python|python[0-9.]+|pypy3?|ruby|perl|php|lua|pwsh|powershell|Rscript)(\.exe)?$`)

// fileFlags are the flags whose value is a file with commands or settings.
var fileFlags = compileOnce(`^(-[cfp]|--(config|file|makefile|rcfile|project|ini|justfile|manifest)[a-z-]*)$`)

// collector finds the files that define a command.
type collector struct {
	dir   *os.Root
	files map[string]*DefiningFile
	// bases are the directories in which tools look for their files.
	bases []string
	// seen holds the recipes that were followed.
	seen map[string]bool
}

// readDefiningFiles returns the files of a workspace that define a command: the listed ones,
// the scripts that its arguments name, and the files of the tools that it uses, also in the
// scripts of package.json and the recipes of a makefile.
func readDefiningFiles(root string, rule *criteria.CheckRule, listed []string) (out []DefiningFile, err error) {
	dir, err := os.OpenRoot(root)
	if err != nil {
		return nil, guideway.Errorf(guideway.CodeUnavailable, "the workspace %s cannot be read: %w", root, err).WithFix("check that the directory exists on this computer, and that this user can read it")
	}
	defer func() { err = errors.Join(err, dir.Close()) }()
	c := &collector{dir: dir, files: map[string]*DefiningFile{}, seen: map[string]bool{}}
	if info, err := dir.Stat(filepath.FromSlash(path.Clean(rule.Dir))); err == nil && !info.IsDir() || err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, guideway.Errorf(guideway.CodeForbidden, "the directory %s of the command is not a readable directory inside the workspace", rule.Dir).
			WithFix("use a directory inside the workspace %s", root)
	}
	for _, name := range listed {
		found, err := c.addFile(name, false)
		if err != nil {
			return nil, err
		}
		if !found {
			c.files[path.Clean(name)] = &DefiningFile{Path: path.Clean(name)}
		}
	}
	base := path.Clean(filepath.ToSlash(rule.Dir))
	for c.bases = []string{base}; base != "."; {
		base = path.Dir(base)
		c.bases = append(c.bases, base)
	}
	if err := c.addCommand(rule.Argv); err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(c.files)) {
		out = append(out, *c.files[name])
	}
	return out, nil
}

// addCommand adds the files of one command: the scripts and settings that its words name,
// and the files of its tools.
func (c *collector) addCommand(words []string) error {
	words = trimPrefixes(words)
	for i := 0; i < len(words); i++ { // words can grow in the loop
		word := words[i]
		if flag, value, ok := strings.Cut(word, "="); ok && strings.HasPrefix(flag, "-") {
			words = append(words, flag, value)
		}
		if c.isDir(word) {
			c.bases = append(c.bases, path.Clean(c.below(word)))
		}
		if isScript(words, i) {
			if _, err := c.addFile(c.below(word), i == 0); err != nil {
				return err
			}
		}
		if i > 0 && words[i-1] == "-m" {
			module := strings.ReplaceAll(word, ".", "/")
			for _, name := range []string{module + ".py", module + "/__main__.py"} {
				if _, err := c.addFile(c.below(name), false); err != nil {
					return err
				}
			}
		}
		if strings.ContainsAny(word, " \t\n") {
			if err := c.addText(word); err != nil {
				return err
			}
		}
	}
	for _, word := range words {
		if err := c.addTool(toolName(word), words); err != nil {
			return err
		}
	}
	return nil
}

// trimPrefixes removes assignments and programs that only start another program.
func trimPrefixes(words []string) []string {
	for len(words) > 1 {
		name, _, assigns := strings.Cut(words[0], "=")
		if (!assigns || !variableName().MatchString(name)) && !slices.Contains([]string{"env", "exec", "command", "time", "nice", "cross-env"}, words[0]) {
			break
		}
		words = words[1:]
	}
	return slices.Clone(words)
}

// isScript reports whether a word can name a script or a file with settings.
func isScript(words []string, i int) bool {
	if i == 0 {
		return strings.ContainsAny(words[i], `/\`) // otherwise it is found in PATH
	}
	if strings.HasSuffix(words[i], ".sh") || strings.HasSuffix(words[i], ".bash") {
		return true
	}
	if strings.HasPrefix(words[i], "-") {
		return false
	}
	if fileFlags().MatchString(words[i-1]) {
		return true
	}
	before := i - 1
	for before > 0 && strings.HasPrefix(words[before], "-") && words[before] != "-m" {
		before--
	}
	return interpreters().MatchString(path.Base(words[before])) || words[before] == "run" && strings.HasSuffix(words[i], ".go")
}

// toolName returns the name of a tool without its directory and its version.
func toolName(word string) string {
	name := path.Base(filepath.ToSlash(word))
	if at := strings.LastIndex(name, "@"); at > 0 {
		name = name[:at]
	}
	return strings.TrimSuffix(strings.TrimSuffix(name, ".exe"), ".cmd")
}

// addTool adds the files of a tool and follows its recipes.
func (c *collector) addTool(tool string, words []string) error {
	for _, name := range toolFiles[tool] {
		for _, base := range slices.Clone(c.bases) {
			at := path.Join(base, name)
			found, err := c.addFile(at, false)
			if err != nil {
				return err
			}
			if !found {
				continue
			}
			if err := c.followRecipes(at, tool, words); err != nil {
				return err
			}
		}
	}
	return nil
}

// addText adds the files of the commands in the text of a shell.
func (c *collector) addText(text string) error {
	for _, words := range splitCommands(text) {
		if err := c.addCommand(words); err != nil {
			return err
		}
	}
	return nil
}

// splitCommands splits the text of a shell into the words of its commands. It need not be
// exact: a word that is no file has no effect.
func splitCommands(text string) (commands [][]string) {
	for _, command := range strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune("\n;&|()`{}", r) }) {
		words := strings.FieldsFunc(command, func(r rune) bool { return strings.ContainsRune(" \t\r'\"", r) })
		if len(words) > 0 {
			words[0] = strings.TrimLeft(words[0], "@+-!")
			commands = append(commands, words)
		}
	}
	return commands
}

// below returns the path below the workspace of a word of the command.
func (c *collector) below(word string) string {
	word = filepath.ToSlash(word)
	if path.IsAbs(word) {
		if rel, err := filepath.Rel(c.dir.Name(), filepath.FromSlash(word)); err == nil {
			return filepath.ToSlash(rel)
		}
	}
	return path.Join(c.bases[0], word)
}

func (c *collector) isDir(word string) bool {
	name := c.below(word)
	if !isUsable(name) {
		return false
	}
	info, err := c.dir.Stat(filepath.FromSlash(name))
	return err == nil && info.IsDir()
}

// isUsable reports whether a name can be a file of the workspace.
func isUsable(name string) bool {
	return name != "" && len(name) < 1024 && filepath.IsLocal(filepath.FromSlash(name)) && !strings.ContainsRune(name, 0)
}

// addFile adds a file. It reports false if there is no such file in the workspace. A
// program may be a link out of the workspace, such as the Python of a virtual environment.
func (c *collector) addFile(name string, isProgram bool) (bool, error) {
	name = path.Clean(name)
	if !isUsable(name) {
		return false, nil
	}
	if c.files[name] != nil {
		return true, nil
	}
	f, err := c.readFile(name, isProgram)
	switch {
	case err != nil:
		return false, guideway.Errorf(guideway.CodeForbidden, "the file %s, which defines a command, cannot be used: %w", name, safeopen.Cause(err)).
			WithFix("use a regular file inside the workspace, readable for this user and of at most %d KiB (a program: %d KiB)", maxDefining>>10, maxProgram>>10)
	case f == nil:
		return false, nil
	case len(c.files) >= maxFiles:
		return false, guideway.Errorf(guideway.CodeTooLarge, "more than %d files define the command", maxFiles).WithFix("call a script, and list the files that define it")
	}
	c.files[name] = f
	return true, nil
}

// readFile reads a file, or returns nil if there is no such file.
func (c *collector) readFile(name string, isProgram bool) (*DefiningFile, error) {
	local := filepath.FromSlash(name)
	info, err := c.dir.Stat(local)
	switch {
	case errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) || errors.Is(err, syscall.ENAMETOOLONG) || err == nil && info.IsDir():
		return nil, nil
	case err != nil && isProgram:
		target, linkErr := c.dir.Readlink(local)
		if linkErr != nil {
			return nil, err
		}
		return &DefiningFile{Path: name, Link: target, Hash: digest.Hex("link " + target)}, nil
	case err != nil:
		return nil, err
	case isProgram && info.Size() > maxDefining:
		return c.hashProgram(name)
	}
	data, err := readIn(c.dir, name, maxDefining)
	if err != nil {
		return nil, err
	}
	text, left := definingPart(path.Base(name), string(data))
	f := &DefiningFile{Path: name, Hash: digest.Hex(text), Left: left, Bytes: int64(len(text))}
	if utf8.ValidString(text) && !strings.Contains(text, "\x00") {
		f.Text = text
	}
	return f, nil
}

// hashProgram returns a large program.
func (c *collector) hashProgram(name string) (f *DefiningFile, err error) {
	file, err := safeopen.OpenIn(c.dir, name)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	h := sha256.New()
	size, err := io.Copy(h, io.LimitReader(file, maxProgram+1))
	if err == nil && size > maxProgram {
		err = sizeError(maxProgram)
	}
	return &DefiningFile{Path: name, Hash: hex.EncodeToString(h.Sum(nil)), Bytes: size}, err
}
