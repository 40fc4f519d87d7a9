// Package deploy_test tests the examples of a deployment: the compose file, the settings of the
// proxy and of the identity provider, and the rules for alerts.
package deploy_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"
	"golang.org/x/crypto/bcrypt"

	"github.com/guideway-dev/guideway/internal/cli"
	"github.com/guideway-dev/guideway/internal/cli/app"
	"github.com/guideway-dev/guideway/internal/config"
)

// envServe makes the test binary run the command line.
const envServe = "GUIDEWAY_DEPLOYTEST"

func TestMain(m *testing.M) {
	if os.Getenv(envServe) != "" {
		os.Exit(cli.Main(os.Args[1:], app.NewSystemHost()))
	}
	os.Exit(m.Run())
}

type service struct {
	Image, Build string
	Command      []string
	Environment  map[string]string
	Volumes      []string
	DependsOn    map[string]any `yaml:"depends_on"`
	Healthcheck  struct{ Test []string }
	Networks     map[string]struct{ Aliases []string }
	Deploy       struct{ Replicas int }
}

type composeFile struct {
	Services map[string]service
	Volumes  map[string]any
}

// readYAML reads a file of this directory.
func readYAML[T any](t *testing.T, name string) (value T) {
	t.Helper()
	text, err := os.ReadFile(name)
	if err == nil {
		err = yaml.Unmarshal(text, &value)
	}
	if err != nil {
		t.Fatal(err)
	}
	return value
}

// loadSettings returns the settings of the environment of a service.
func loadSettings(t *testing.T, s service) *config.Config {
	t.Helper()
	var environ []string
	for name, value := range s.Environment {
		environ = append(environ, name+"="+value)
	}
	getenv := func(name string) string {
		if name == "HOME" {
			return "/data" // in the image
		}
		return s.Environment[name]
	}
	cfg, err := config.Load(config.Options{Getenv: getenv, Environ: environ, Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

// TestCompose checks that each variable, command and flag of the compose file exists, that the
// settings are valid, and that services, volumes and files that it names exist.
func TestCompose(t *testing.T) {
	t.Parallel()
	compose := readYAML[composeFile](t, "compose.yaml")
	known := []string{"PGPASSWORD", "SSL_CERT_DIR"} // of the libraries
	for _, s := range config.Settings() {
		known = append(known, s.Env)
	}
	for name, s := range compose.Services {
		if at := strings.LastIndex(s.Image, ":"); s.Build == "" && (at < 0 || s.Image[at:] == ":latest") {
			t.Errorf("%s: the image %q has no version", name, s.Image)
		}
		for other := range s.DependsOn {
			if _, ok := compose.Services[other]; !ok {
				t.Errorf("%s depends on %s, which does not exist", name, other)
			}
		}
		for _, v := range s.Volumes {
			from, _, _ := strings.Cut(v, ":")
			_, volume := compose.Volumes[from]
			if _, err := os.Stat(from); !volume && (!strings.HasPrefix(from, "./") || err != nil) {
				t.Errorf("%s: the volume %q does not exist", name, from)
			}
		}
		if s.Build == "" {
			continue
		}
		if _, err := os.Stat(filepath.Join(s.Build, "Dockerfile")); err != nil {
			t.Error(err)
		}
		for variable := range s.Environment {
			if !slices.Contains(known, variable) {
				t.Errorf("%s: the variable %s does not exist", name, variable)
			}
		}
		var out bytes.Buffer
		host := app.NewSystemHost()
		host.Out, host.Err = &out, &out
		if code := cli.Run(t.Context(), append(slices.Clone(s.Command), "--help"), host); code != 0 || !strings.Contains(out.String(), "guideway "+s.Command[0]) {
			t.Errorf("%s: guideway %q: %d\n%s", name, s.Command, code, out.String())
		}
		cfg := loadSettings(t, s)
		if err := cfg.Identity.Check(cfg); err != nil || !cfg.UsesPostgres() || len(cfg.Warnings) > 0 {
			t.Errorf("%s: %v, store %s, warnings %v", name, err, cfg.RedactedStore(), cfg.Warnings)
		}
	}
	guideway := compose.Services["guideway"]
	if guideway.Deploy.Replicas != 3 || !strings.HasSuffix(guideway.Healthcheck.Test[len(guideway.Healthcheck.Test)-1], "/api/ready") {
		t.Errorf("%+v", guideway)
	}
}

// TestProvider checks that the provider and the proxy have the names and the client of the
// compose file.
func TestProvider(t *testing.T) {
	t.Parallel()
	compose := readYAML[composeFile](t, "compose.yaml")
	cfg := loadSettings(t, compose.Services["guideway"])
	dex := readYAML[struct {
		Issuer        string
		StaticClients []struct {
			ID, Secret   string
			RedirectURIs []string `yaml:"redirectURIs"`
		} `yaml:"staticClients"`
		StaticPasswords []struct{ Email, Hash string } `yaml:"staticPasswords"`
	}](t, "dex.yaml")
	client := dex.StaticClients[0]
	if dex.Issuer != cfg.Identity.Issuer || client.ID != cfg.Identity.ClientID || client.RedirectURIs[0] != cfg.PublicURL+"/login/identity/callback" ||
		!strings.Contains(strings.Join(compose.Services["certificates"].Command, " "), "printf "+client.Secret+" >"+cfg.Identity.ClientSecretFile) {
		t.Errorf("the client %+v of %s is not that of the compose file", client, dex.Issuer)
	}
	for _, p := range dex.StaticPasswords {
		if err := bcrypt.CompareHashAndPassword([]byte(p.Hash), []byte("password")); err != nil || len(cfg.Identity.RolesOf([]string{p.Email})) == 0 {
			t.Errorf("%s cannot log in: %v, roles %q", p.Email, err, cfg.Identity.RolesOf([]string{p.Email}))
		}
	}
	for _, url := range []string{cfg.PublicURL, dex.Issuer} {
		name := strings.TrimSuffix(strings.TrimPrefix(url, "https://"), ":8443")
		if !slices.Contains(compose.Services["proxy"].Networks["default"].Aliases, name) || !strings.Contains(strings.Join(compose.Services["certificates"].Command, " "), "DNS:"+name) {
			t.Errorf("%s is not a name of the proxy, or not in its certificate", name)
		}
	}
}

// findProxy returns the program of the proxy, or skips the test.
func findProxy(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath("haproxy")
	if err != nil {
		t.Skip("HAProxy is not installed (Debian: apt-get install haproxy)")
	}
	return path
}

// writeProxyConfig writes the settings of the proxy with a certificate for the test and some
// replaced lines.
func writeProxyConfig(t *testing.T, replace ...string) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "tls.pem")
	text := append(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})...)
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	settings, err := os.ReadFile("haproxy.cfg")
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(replace); i += 2 {
		if !bytes.Contains(settings, []byte(replace[i])) {
			t.Fatalf("haproxy.cfg has no %q", replace[i])
		}
	}
	changed := strings.NewReplacer(append(replace, "/tls/tls.pem", file)...).Replace(string(settings))
	path := filepath.Join(dir, "haproxy.cfg")
	if err := os.WriteFile(path, []byte(changed), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestProxyConfig(t *testing.T) {
	t.Parallel()
	if out, err := exec.CommandContext(t.Context(), findProxy(t), "-c", "-f", writeProxyConfig(t)).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// startServer starts `guideway serve` with a home directory, and returns its address.
func startServer(t *testing.T, home string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "serve", "--listen", "127.0.0.1:0")
	cmd.Env, cmd.Dir = []string{"HOME=" + home, envServe + "=1", "PATH=" + os.Getenv("PATH")}, home
	out, err := cmd.StderrPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Wait() }) // the context of the test has ended, and with it the process
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if m := regexp.MustCompile(`MCP\s+http://(\S+)/mcp`).FindStringSubmatch(lines.Text()); m != nil {
			go func() { _, _ = io.Copy(io.Discard, out) }()
			return m[1]
		}
	}
	t.Fatalf("the server ended: %v", lines.Err())
	return ""
}

func get(t *testing.T, home, url string) *http.Response {
	t.Helper()
	return send(t, home, http.MethodGet, url, "")
}

// send sends a request with the token of a home directory.
func send(t *testing.T, home, method, url, body string) *http.Response {
	t.Helper()
	token, err := os.ReadFile(filepath.Join(home, ".local", "share", "guideway", "token"))
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = answer.Body.Close() })
	return answer
}

// startProxy starts the proxy in front of two servers of one data directory and waits until
// it answers.
func startProxy(t *testing.T, servers ...string) string {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	var lines strings.Builder
	for i, server := range servers {
		fmt.Fprintf(&lines, "server s%d %s\n    ", i, server)
	}
	path := writeProxyConfig(t, "bind :8443 ssl crt /tls/tls.pem alpn h2,http/1.1", "bind "+address,
		"server-template guideway 3 guideway:3000 resolvers docker init-addr none", lines.String())
	cmd := exec.CommandContext(t.Context(), findProxy(t), "-db", "-f", path)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Wait() })
	for t.Context().Err() == nil {
		conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", address)
		if err == nil {
			_ = conn.Close()
			break
		}
	}
	return "http://" + address
}

// TestProxyForwardsStreams checks that the events of a stream reach a client through the proxy as
// they come, whichever server has the change, and that the proxy knows which server is ready.
func TestProxyForwardsStreams(t *testing.T) {
	t.Parallel()
	findProxy(t)
	home := t.TempDir()
	first, second := startServer(t, home), startServer(t, home)
	proxy := startProxy(t, first, second)
	for range 4 {
		if answer := get(t, home, proxy+"/api/ready"); answer.StatusCode != http.StatusOK {
			t.Fatalf("ready: %s", answer.Status)
		}
	}
	stream := get(t, home, proxy+"/api/events")
	events := bufio.NewScanner(stream.Body)
	for range 2 { // one at each server
		if answer := send(t, home, http.MethodPost, proxy+"/api/runs", `{"workflowId": "coding-task"}`); answer.StatusCode != http.StatusCreated {
			t.Fatalf("the start of a run: %s", answer.Status)
		}
		for events.Scan() && !strings.HasPrefix(events.Text(), "data:") {
			continue
		}
		if err := events.Err(); err != nil || events.Text() == "" {
			t.Fatalf("the stream ended: %v", err)
		}
	}
}

// TestAlerts checks that the rules use only metrics that a server has.
func TestAlerts(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	answer := get(t, home, "http://"+startServer(t, home)+"/metrics")
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	rules := readYAML[struct {
		Groups []struct {
			Rules []struct{ Alert, Expr string }
		}
	}](t, "alerts.yaml")
	used := 0
	for _, group := range rules.Groups {
		for _, rule := range group.Rules {
			for _, name := range regexp.MustCompile(`\b(?:guideway|process|go)_[a-z_]+`).FindAllString(rule.Expr, -1) {
				used++
				if !strings.Contains(string(text), "# TYPE "+strings.TrimSuffix(name, "_bucket")+" ") {
					t.Errorf("%s: the metric %s does not exist", rule.Alert, name)
				}
			}
		}
	}
	prometheus := readYAML[struct {
		RuleFiles []string `yaml:"rule_files"`
		Scrapes   []struct {
			Job string `yaml:"job_name"`
		} `yaml:"scrape_configs"`
	}](t, "prometheus.yaml")
	if !slices.Equal(prometheus.RuleFiles, []string{"alerts.yaml"}) || prometheus.Scrapes[0].Job != "guideway" {
		t.Errorf("%+v", prometheus)
	}
	if used < 8 {
		t.Errorf("only %d metrics were found in the rules", used)
	}
	if path, err := exec.LookPath("promtool"); err == nil {
		if out, err := exec.CommandContext(context.WithoutCancel(t.Context()), path, "check", "rules", "alerts.yaml").CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
	}
}
