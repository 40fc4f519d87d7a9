package app

import (
	"cmp"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/config"
	"github.com/guideway-dev/guideway/internal/notice"
)

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
