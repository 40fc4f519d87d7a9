package app

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/audit"
	"github.com/guideway-dev/guideway/internal/catalog"
	"github.com/guideway-dev/guideway/internal/config"
	"github.com/guideway-dev/guideway/internal/evidence/execute"
	"github.com/guideway-dev/guideway/internal/hooks/approval"
	"github.com/guideway-dev/guideway/internal/install"
	"github.com/guideway-dev/guideway/internal/notice"
	"github.com/guideway-dev/guideway/internal/run/project"
	"github.com/guideway-dev/guideway/workflows"
	"github.com/spf13/pflag"
)

// App contains the shared parts of all commands: the process and the flags of the settings.
type App struct {
	Host  *Host
	Flags *SettingFlags

	// shared is created by the first Load.
	shared *sharedStates
}

// SettingFlags holds the configuration file and the flags of the settings, keyed by the
// name of the setting.
type SettingFlags struct {
	File   string
	values map[string]*[]string
	flags  map[string][]*pflag.Flag
}

// AddSettingFlags adds --config and a flag for each setting to fs.
func AddSettingFlags(fs *pflag.FlagSet) *SettingFlags {
	f := &SettingFlags{values: map[string]*[]string{}, flags: map[string][]*pflag.Flag{}}
	fs.StringVar(&f.File, "config", "", "configuration file (default: guideway.json in the user's configuration directory, or config.json in the data directory)")
	for _, s := range config.Settings() {
		list := new([]string)
		fs.StringArrayVar(list, s.Flag, nil, settingUsage(s))
		f.values[s.Name] = list
		flag := fs.Lookup(s.Flag)
		flag.DefValue = ""
		if s.Kind == config.KindBool {
			flag.NoOptDefVal = "true"
		}
		f.flags[s.Name] = []*pflag.Flag{flag}
		if s.FlagAlias != "" {
			fs.StringArrayVar(list, s.FlagAlias, nil, "same as --"+s.Flag)
			f.flags[s.Name] = append(f.flags[s.Name], fs.Lookup(s.FlagAlias))
		}
	}
	return f
}

func settingUsage(s config.Setting) string {
	return strings.TrimSuffix(s.Description(), ".") + " ($" + s.Env + ")"
}

// Load reads the settings.
func (a *App) Load() (*config.Config, error) {
	opts := config.Options{File: a.Flags.File, Getenv: a.Host.Getenv, Environ: a.Host.Environ, Dir: a.Host.Dir, Flags: map[string][]string{}}
	for name, flags := range a.Flags.flags {
		if slices.ContainsFunc(flags, func(f *pflag.Flag) bool { return f.Changed }) {
			opts.Flags[name] = *a.Flags.values[name]
		}
	}
	cfg, err := config.Load(opts)
	if err == nil {
		cfg.Shared = a.sharedState(cfg)
	}
	return cfg, err
}

// LoadUser reads the settings and returns the principal of the command line: the operating
// system user, as on stdio.
func (a *App) LoadUser() (*config.Config, guideway.Principal, error) {
	cfg, err := a.Load()
	if err != nil {
		return nil, guideway.Principal{}, err
	}
	user, err := LocalUser(cfg)
	return cfg, guideway.Principal{User: user, Client: ClientName}, err
}

// Logger returns a logger that writes to standard error, because standard output is used by
// the protocol.
func (a *App) Logger(cfg *config.Config) *slog.Logger { return a.newLogger(cfg, cfg.Log.Threshold()) }

// newLogger returns a logger with the threshold level.
func (a *App) newLogger(cfg *config.Config, level slog.Level) *slog.Logger {
	opts := &slog.HandlerOptions{Level: level}
	if cfg.Log.Format == "json" {
		return slog.New(slog.NewJSONHandler(a.Host.Err, opts))
	}
	return slog.New(slog.NewTextHandler(a.Host.Err, opts))
}

// OpenCatalog loads the definitions of all sources. If watch is true, the catalog follows
// changes until it is closed and does not wait for remote sources. Otherwise it first
// fetches the remote sources that are due.
func (a *App) OpenCatalog(ctx context.Context, cfg *config.Config, watch bool) (*catalog.Catalog, error) {
	sources := a.CatalogSources(cfg)
	if !watch {
		a.syncDueSources(ctx, sources)
	}
	cat := catalog.New(sources, catalogOptions(cfg))
	open := cat.Load
	if watch {
		open = cat.Open
	}
	if err := open(ctx); err != nil {
		return nil, err
	}
	return cat, nil
}

// LoadCatalog loads the settings and the definitions for one command.
func (a *App) LoadCatalog(ctx context.Context) (*config.Config, *catalog.Catalog, error) {
	cfg, err := a.Load()
	if err != nil {
		return nil, nil, err
	}
	cat, err := a.OpenCatalog(ctx, cfg, false)
	return cfg, cat, err
}

// OpenCachedCatalog loads the definitions without fetching remote sources. Shell completion
// uses it.
func (a *App) OpenCachedCatalog(ctx context.Context) (*catalog.Catalog, error) {
	cfg, err := a.Load()
	if err != nil {
		return nil, err
	}
	cat := catalog.New(a.CatalogSources(cfg), catalogOptions(cfg))
	return cat, cat.Load(ctx)
}

// catalogOptions returns the options of a catalog from the configuration.
func catalogOptions(cfg *config.Config) catalog.Options {
	return catalog.Options{TTL: cfg.Workflows.CacheTTL, Index: filepath.Join(sourceCacheDir(cfg), "index"), Program: buildID()}
}

// buildID identifies this build, so that index entries of other builds are not used.
func buildID() string {
	name, err := os.Executable()
	if err != nil {
		return Version()
	}
	info, err := os.Stat(name)
	if err != nil {
		return Version()
	}
	return fmt.Sprintf("%s %d %d", Version(), info.Size(), info.ModTime().UnixNano())
}

// CatalogSources returns the sources that the configuration enables.
func (a *App) CatalogSources(cfg *config.Config) []catalog.Source {
	return catalog.Standard(a.layoutFor(cfg, a.Host.Dir))
}

// layoutFor returns the locations of the sources for a working directory.
func (a *App) layoutFor(cfg *config.Config, dir string) catalog.Layout {
	layout := catalog.Layout{Custom: cfg.Workflows.Paths, More: append(a.npmSources(cfg), a.remoteSources(cfg)...), Levels: map[string]catalog.Level{}}
	for name, level := range cfg.Workflows.Trust {
		layout.Levels[name] = catalog.Level(level)
	}
	if cfg.Workflows.Bundled {
		layout.Bundled = workflows.FS()
	}
	if cfg.Workflows.User {
		layout.User = cfg.Workflows.UserDir
	}
	if cfg.Workflows.Project {
		layout.Project, layout.ProjectRoot = dir, project.TrustedTop(dir)
	}
	return layout
}

// Version returns the module version of the build, or "dev".
func Version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" || info.Main.Version == "(devel)" {
		return "dev"
	}
	return info.Main.Version
}

// ServerProbeTimeout is the maximum time to wait for the health answer of a server.
const ServerProbeTimeout = 500 * time.Millisecond

// ConfigFile returns the path of the configuration file.
func ConfigFile(cfg *config.Config) (string, error) {
	switch {
	case cfg.File != "":
		return cfg.File, nil
	case cfg.Dirs.Config == "":
		return "", guideway.Errorf(guideway.CodeUnavailable, "the configuration directory is unknown").WithFix("set HOME (USERPROFILE on Windows), or name a file with --config")
	}
	return filepath.Join(cfg.Dirs.Config, "guideway.json"), nil
}

// EditConfig changes the configuration file with edit and returns its path. It publishes the
// settings that instances share, and records the change in the audit log.
func (a *App) EditConfig(ctx context.Context, cfg *config.Config, edit func([]byte) ([]byte, error)) (string, error) {
	path, err := a.editSettings(ctx, cfg, edit)
	if err == nil {
		a.RecordCommand(ctx, cfg, audit.Configuration, path, "changed")
	}
	return path, err
}

func (a *App) editSettings(ctx context.Context, cfg *config.Config, edit func([]byte) ([]byte, error)) (string, error) {
	if cfg.Shared == nil {
		return a.editConfigFile(ctx, cfg, edit)
	}
	path, err := ConfigFile(cfg)
	if err != nil {
		return "", err
	}
	var next string
	return path, a.changeShared(ctx, cfg, func(content []byte, text string) ([]byte, error) {
		if text != "" {
			var err error
			if content, err = setShared(content, text); err != nil {
				return nil, err
			}
		}
		return edit(content)
	}, &next)
}

func (a *App) editConfigFile(ctx context.Context, cfg *config.Config, edit func([]byte) ([]byte, error)) (string, error) {
	path, err := ConfigFile(cfg)
	if err != nil {
		return "", err
	}
	file, err := install.Read(ctx, path)
	if err != nil {
		return "", err
	}
	after, err := edit(file.Content)
	if err != nil {
		return "", guideway.Errorf(guideway.ErrorCode(err), "%s: %w", path, err).WithFix("%s", guideway.ErrorFix(err))
	}
	if file.Exists && bytes.Equal(after, file.Content) || !file.Exists && len(after) == 0 {
		return path, nil
	}
	_, err = install.Apply(ctx, install.Change{
		Action: install.ActionUpdated, Path: path, Before: file.Content, After: after, Existed: file.Exists, Private: true,
	})
	return path, err
}

// InstallEnv returns the environment of this process for an install plan.
func (h *Host) InstallEnv(goos string) install.Env {
	home := h.Getenv("HOME")
	if goos == "windows" {
		home = h.Getenv("USERPROFILE")
	}
	return install.Env{
		GOOS: goos, Home: home, Dir: h.Dir, Getenv: h.Getenv,
		Glob: func(pattern string) []string {
			paths, err := filepath.Glob(pattern)
			if err != nil {
				return nil
			}
			return paths
		},
		Exists: func(path string) bool {
			_, err := os.Stat(path)
			return err == nil
		},
	}
}

// NewChecker returns a checker that executes checks on this machine, with the approvals of
// the user. tools calls the tools of the gateway; it is nil in a process without a gateway.
func (a *App) NewChecker(cfg *config.Config, tools execute.Tools) *execute.Checker {
	opts := execute.Options{
		Approvals: func() (approval.Records, error) { return ReadApprovals(cfg, a.Host.CurrentTime) },
		Tools:     tools, Now: a.Host.CurrentTime,
	}
	if name, err := os.Hostname(); err == nil {
		opts.Host = name
	}
	return execute.New(opts)
}

// StartBrowser opens an http or https URL in the default browser, without a shell.
func StartBrowser(ctx context.Context, link string) error {
	opener := []string{"xdg-open"}
	switch runtime.GOOS {
	case "darwin":
		opener = []string{"open"}
	case "windows":
		opener = []string{"rundll32", "url.dll,FileProtocolHandler"}
	}
	cmd := exec.CommandContext(ctx, opener[0], append(opener[1:], link)...) //nolint:gosec // G204: a checked URL is one argument
	if err := cmd.Run(); err != nil {
		return guideway.Errorf(guideway.CodeUnavailable, "cannot open the browser with %s: %w", opener[0], err).WithFix("open the printed link in a browser")
	}
	return nil
}

// noticeTimeout is the time limit of one delivery if the receiver has none.
const noticeTimeout = 10 * time.Second

// NoticesDir returns the directory of the outboxes of notices.
func NoticesDir(cfg *config.Config) string { return filepath.Join(cfg.DataDir, "notices") }

// NoticeReceivers returns the names of the enabled receivers of notices, sorted.
func NoticeReceivers(cfg *config.Config) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(cfg.Notices)), func(name string) bool { return cfg.Notices[name].Disabled })
}

// NoticeReceiver returns a receiver with its secrets. It returns an error if a secret is
// missing.
func (a *App) NoticeReceiver(cfg *config.Config, name string) (notice.Receiver, error) {
	set := cfg.Notices[name]
	types := set.Types
	if types == nil {
		types = config.DefaultNoticeTypes()
	}
	r := notice.Receiver{
		Name: name, Command: set.Command, Plain: set.Format == config.NoticeFormatText,
		Timeout: cmp.Or(time.Duration(set.Timeout), noticeTimeout), UserAgent: "guideway/" + Version(),
	}
	for _, t := range types {
		r.Types = append(r.Types, notice.Type(t))
	}
	for _, m := range []struct {
		member, text string
		into         *string
	}{{"url", set.URL, &r.URL}, {"secret", set.Secret, &r.Secret}} {
		value, err := a.secretResolver().Resolve(m.text)
		if err != nil {
			return notice.Receiver{}, guideway.Errorf(guideway.CodeInvalid, "read %q of the receiver %q: %w", m.member, name, err).
				WithFix("%s", guideway.ErrorFix(err))
		}
		*m.into = value
	}
	// A webhook must not become a command, or unsigned, because a secret is empty.
	if set.URL != "" && !strings.HasPrefix(r.URL, "https://") && !strings.HasPrefix(r.URL, "http://") {
		return notice.Receiver{}, guideway.Errorf(guideway.CodeInvalid, `"url" of the receiver %q is not an http or https URL`, name).
			WithFix("set the variable or the keychain entry of \"url\" to a URL such as https://chat.example/hook")
	}
	if set.Secret != "" && r.Secret == "" {
		return notice.Receiver{}, guideway.Errorf(guideway.CodeInvalid, `"secret" of the receiver %q is empty`, name).
			WithFix("set the variable or the keychain entry of \"secret\", or remove \"secret\"")
	}
	return r, nil
}
