package execute

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/guideway-dev/guideway"
)

// passedVariables are the variables of the environment that each command receives: where
// programs, the user's files, temporary files and certificates are, and the language.
var passedVariables = []string{
	"PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "SSL_CERT_FILE", "SSL_CERT_DIR",
	"GOROOT", "GOTOOLCHAIN", "JAVA_HOME", "RUSTUP_HOME", "NVM_DIR", "PYENV_ROOT", "RBENV_ROOT", "VOLTA_HOME", "VIRTUAL_ENV",
	// Windows
	"SYSTEMROOT", "SYSTEMDRIVE", "WINDIR", "COMSPEC", "PATHEXT", "TEMP", "TMP", "USERNAME", "USERPROFILE", "HOMEDRIVE", "HOMEPATH", "APPDATA", "LOCALAPPDATA",
	"PROGRAMDATA", "PROGRAMFILES", "PROGRAMFILES(X86)", "COMMONPROGRAMFILES", "NUMBER_OF_PROCESSORS", "PROCESSOR_ARCHITECTURE", "OS",
}

// cacheVariables are the variables that name the caches of tools. Each command receives them,
// and a command in a sandbox can write there.
var cacheVariables = []string{
	"XDG_CACHE_HOME", "GOPATH", "GOCACHE", "GOMODCACHE", "GOLANGCI_LINT_CACHE", "CARGO_HOME", "CARGO_TARGET_DIR", "npm_config_cache", "NPM_CONFIG_CACHE",
	"YARN_CACHE_FOLDER", "PNPM_HOME", "PIP_CACHE_DIR", "UV_CACHE_DIR", "POETRY_CACHE_DIR", "PYTEST_CACHE_DIR", "RUFF_CACHE_DIR", "MYPY_CACHE_DIR",
	"GRADLE_USER_HOME", "CCACHE_DIR", "SCCACHE_DIR", "DENO_DIR", "BUN_INSTALL_CACHE_DIR",
}

// homeCaches are the caches below the user's home.
var homeCaches = []string{
	".cache", ".npm", ".yarn", ".pnpm-store", ".local/share/pnpm", ".cargo/registry", ".cargo/git", ".cargo/.package-cache", ".gradle", ".m2/repository",
	"go/pkg", ".deno", ".bun/install/cache", ".ccache", ".nuget/packages", ".local/share/virtualenvs",
}

// environment returns the environment of a command: the usual variables and the named ones,
// with the values of this process.
func environment(named []string) []string {
	wanted := slices.Concat(passedVariables, cacheVariables, named)
	return slices.DeleteFunc(os.Environ(), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return !slices.ContainsFunc(wanted, func(w string) bool {
			return w == name || runtime.GOOS == "windows" && strings.EqualFold(w, name)
		})
	})
}

// writablePlaces returns the directories and devices outside the workspace that a command in
// a sandbox can write.
func writablePlaces(env []string) []string {
	places := []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty", "/dev/ptmx", "/dev/pts", "/dev/shm"}
	for _, entry := range env {
		name, value, _ := strings.Cut(entry, "=")
		switch {
		case !filepath.IsAbs(value):
		case name == "GOPATH":
			places = append(places, filepath.Join(value, "pkg"))
		case name == "HOME":
			for _, cache := range homeCaches {
				places = append(places, filepath.Join(value, cache))
			}
		case slices.Contains(cacheVariables, name):
			places = append(places, value)
		}
	}
	return places
}

// sandboxDir is the directory for temporary files of a command in a sandbox.
type sandboxDir struct{ dir string }

func newSandboxDir() (*sandboxDir, error) {
	dir, err := os.MkdirTemp("", "guideway-check-")
	if err != nil {
		return nil, guideway.Errorf(guideway.CodeUnavailable, "create a temporary directory: %w", err).WithFix("make %s writable for this user, and check that its disk is not full", os.TempDir())
	}
	return &sandboxDir{dir}, nil
}

// use returns an environment in which temporary files are in the directory.
func (s *sandboxDir) use(env []string) []string {
	env = slices.DeleteFunc(env, func(entry string) bool { return strings.HasPrefix(entry, "TMPDIR=") })
	return append(env, "TMPDIR="+s.dir)
}

// remove removes the directory.
func (s *sandboxDir) remove() {
	if s == nil {
		return
	}
	// A directory that the command has made read-only remains.
	_ = os.RemoveAll(s.dir)
}
