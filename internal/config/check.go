package config

import (
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/guideway-dev/guideway/internal/platform/spelling"
)

// maxDuration is the longest duration that a setting takes which does not say
// otherwise.
const maxDuration = day

// defaultCacheTTL is as long as in the systems whose variables are aliases.
const defaultCacheTTL = 5 * time.Minute

func checkListen(text string) *fault {
	const fix = `write host:port, such as "127.0.0.1:3000"`
	host, port, err := net.SplitHostPort(text)
	if err != nil {
		return faultf(fix, "%q is not a host and a port", text)
	}
	if strings.ContainsAny(host, " \t/@") {
		return faultf(fix, "%q is not a host", host)
	}
	if number, err := strconv.ParseUint(port, 10, 16); err != nil || strconv.FormatUint(number, 10) != port {
		return faultf(fix, "%q is not a port from 0 to 65535", port)
	}
	return nil
}

func checkOrigin(text string) *fault {
	const fix = `write scheme://host or scheme://host:port, such as "https://app.example.com"`
	if text == "*" {
		return faultf(fix, `"*" would let every web page in`)
	}
	u, err := url.Parse(text)
	if err != nil || u.Scheme == "" || u.Host == "" || u.Hostname() == "" || u.User != nil || u.Scheme+"://"+u.Host != text {
		return faultf(fix, "%q is not an origin", text)
	}
	return nil
}

func checkHost(text string) *fault {
	const fix = `write a host or host:port without a scheme, such as "guideway.local"`
	host := text
	if strings.Contains(text, ":") && !strings.Contains(text, "/") {
		var port string
		var err error
		if host, port, err = net.SplitHostPort(text); err != nil {
			return faultf(fix, "%q is not a host", text)
		}
		if _, err := strconv.ParseUint(port, 10, 16); err != nil {
			return faultf(fix, "%q is not a port from 0 to 65535", port)
		}
	}
	if host == "" || host == "*" || strings.ContainsAny(host, " \t/@*?#") {
		return faultf(fix, "%q is not a host", text)
	}
	return nil
}

// checkStore takes "sqlite" and the URL of a PostgreSQL database. Its messages
// never show the text: it may hold a password.
func checkStore(text string) *fault {
	const fix = `write "sqlite", "files", or a URL such as "postgres://user@host/guideway"`
	if text == StoreSQLite || text == StoreFiles {
		return nil
	}
	scheme, _, ok := strings.Cut(text, "://")
	switch {
	case !ok:
		return faultf(fix, "the store is neither %q nor %q nor a URL", StoreSQLite, StoreFiles)
	case scheme != "postgres" && scheme != "postgresql":
		return faultf(fix, "the store is a URL, but not one of postgres://")
	}
	u, err := url.Parse(text)
	if err != nil || u.Path == "" || u.Path == "/" {
		return faultf(fix+`; write special characters of a password as %XX`, "the store is not the URL of a database")
	}
	return nil
}

// redactStore takes out whatever of a store is secret.
func redactStore(text string) string {
	if text == "" || text == StoreSQLite || text == StoreFiles {
		return text
	}
	u, err := url.Parse(text)
	if err != nil {
		return "postgres://…"
	}
	if _, has := u.User.Password(); has {
		u.User = url.User(u.User.Username())
	}
	query := u.Query()
	for name := range query {
		if strings.Contains(strings.ToLower(name), "pass") {
			query.Del(name)
		}
	}
	u.RawQuery = query.Encode()
	return u.String()
}

// checked applies the setting's own rules to the texts of v.
func (s *setting) checked(v value) (value, *fault) {
	switch s.Kind {
	case KindBool:
	case KindCount, KindPercent:
		return s.checkedNumber(v)
	case KindSize:
		n, err := ParseSize(v.text)
		if err != nil {
			return v, faultf(`write a number with a unit, such as "10MB" or "1GiB"`, "%q is not a size", v.text)
		}
		v.number = n
	case KindDuration:
		return s.checkedDuration(v)
	case KindList, KindPaths:
		if s.nonEmpty && len(v.list) == 0 {
			return v, faultf("name at least one of: "+strings.Join(s.Allowed, ", "), "the list is empty")
		}
		for _, text := range v.list {
			if f := s.checkText(text); f != nil {
				return v, f
			}
		}
	default:
		if f := s.checkText(v.text); f != nil {
			return v, f
		}
	}
	return v, nil
}

// checkedNumber reads a whole number within the bounds of the setting.
func (s *setting) checkedNumber(v value) (value, *fault) {
	text, least, most := strings.TrimSpace(v.text), s.least, s.most
	if s.Kind == KindPercent {
		text, least, most = strings.TrimSpace(strings.TrimSuffix(text, "%")), 1, 100
	}
	n, err := strconv.ParseInt(text, 10, 64)
	switch {
	case err == nil && n >= least && (most == 0 || n <= most):
		v.number = n
		return v, nil
	case most == 0:
		return v, faultf("write a whole number, such as 100", "%q is not a whole number from %d on", v.text, least)
	default:
		return v, faultf("write a whole number, such as 80", "%q is not a whole number from %d to %d", v.text, least, most)
	}
}

// checkedDuration reads a duration within the bounds of the setting.
func (s *setting) checkedDuration(v value) (value, *fault) {
	most, fix := time.Duration(s.most), `write a number with a unit, such as "12h" or "30d"`
	if most == 0 {
		most, fix = maxDuration, `write a number with a unit, such as "30s" or "5m"`
	}
	d, err := ParseDuration(v.text)
	if err != nil || d > most {
		return v, faultf(fix, "%q is not a duration from 0s to %s", v.text, DurationText(most))
	}
	v.duration = d
	return v, nil
}

func (s *setting) checkText(text string) *fault {
	if strings.TrimSpace(text) == "" {
		return faultf("give a value, or remove the setting", "the value is empty")
	}
	if strings.ContainsRune(text, 0) {
		return faultf("remove the null character", "the value holds a null character")
	}
	if len(s.Allowed) > 0 && !slices.Contains(s.Allowed, text) {
		fix := "use one of: " + strings.Join(s.Allowed, ", ")
		if near := spelling.Closest(text, s.Allowed); near != "" {
			fix = fmt.Sprintf("did you mean %q? The values are: %s", near, strings.Join(s.Allowed, ", "))
		}
		return faultf(fix, "%q is not a value", text)
	}
	if s.check != nil {
		return s.check(text)
	}
	return nil
}
