package postgres

import (
	"context"
	"fmt"
	"net"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/guideway-dev/guideway"
)

const (
	defaultSchema = "guideway"
	// oldestServer is the oldest version that is accepted, as the server
	// numbers versions.
	oldestServer = 140000
	// lockWait bounds how long a statement waits for another one's row.
	lockWait = 10 * time.Second
	// idleTime is how long a connection that nobody uses stays open: there may
	// be a process for each client, and the server's connections are few.
	idleTime = 2 * time.Minute
)

// config is what Open works with.
type config struct {
	pool   *pgxpool.Config
	schema string
	// where names the database to people, without anything secret.
	where string
}

// configure reads the options. The library's own words about a URL that it
// cannot read are left out: they may quote a password.
func configure(o Options) (*config, error) {
	pool, err := pgxpool.ParseConfig(o.URL)
	if err != nil {
		return nil, guideway.Errorf(guideway.CodeInvalid, "the URL of the PostgreSQL store cannot be read").
			WithFix("write it as postgres://user@host:5432/database; a password with signs such as @ / # : is written with %%40 %%2F %%23 %%3A, or left out and put into PGPASSWORD or ~/.pgpass")
	}
	cfg := &config{pool: pool, schema: defaultSchema}
	params := pool.ConnConfig.RuntimeParams
	if given, ok := params["search_path"]; ok {
		cfg.schema = given
		delete(params, "search_path")
	}
	if !isSchemaName(cfg.schema) {
		return nil, guideway.Errorf(guideway.CodeInvalid, "search_path=%q in the URL of the store names no schema that can be used", cfg.schema).
			WithFix("use one name of small letters, digits and _, such as search_path=guideway")
	}
	if params["application_name"] == "" {
		params["application_name"] = "guideway"
	}
	if !strings.Contains(o.URL, "pool_max_conns") {
		pool.MaxConns = int32(max(o.MaxConns, 0))
		if pool.MaxConns == 0 {
			pool.MaxConns = defaultMaxConns
		}
	}
	if pool.ConnConfig.ConnectTimeout == 0 {
		pool.ConnConfig.ConnectTimeout = 5 * time.Second
	}
	pool.MaxConnIdleTime = idleTime
	pool.AfterConnect = func(ctx context.Context, c *pgx.Conn) error { return setUp(ctx, c, cfg.schema) }
	cc := pool.ConnConfig
	cfg.where = fmt.Sprintf("%s/%s", net.JoinHostPort(cc.Host, strconv.Itoa(int(cc.Port))), cc.Database)
	return cfg, nil
}

func isSchemaName(name string) bool {
	return regexp.MustCompile(`^[a-z_][a-z0-9_]{0,47}$`).MatchString(name) && !strings.HasPrefix(name, "pg_")
}

// setUp prepares a new connection. It uses statements rather than parameters of
// the connection, which poolers refuse. A commit that is acknowledged must be on
// disk: a server or role that has it otherwise is overruled, one that wants more
// than that is not.
func setUp(ctx context.Context, c *pgx.Conn, schema string) error {
	_, err := c.Exec(ctx, `
		select set_config('search_path', $1::text, false), set_config('lock_timeout', $2::text, false),
			case when current_setting('synchronous_commit') = 'off' then set_config('synchronous_commit', 'on', false) end`,
		schema, strconv.FormatInt(lockWait.Milliseconds(), 10))
	return err
}

// checkServer refuses a server that cannot keep what it is given.
func (s *Store) checkServer(ctx context.Context, _ bool) error {
	var version int
	var encoding, readOnly, fsync string
	var standby bool
	err := s.pool.QueryRow(ctx, `
		select current_setting('server_version_num')::int, current_setting('server_encoding'),
			current_setting('transaction_read_only'), current_setting('fsync'), pg_is_in_recovery()`).
		Scan(&version, &encoding, &readOnly, &fsync, &standby)
	if err != nil {
		return err
	}
	switch {
	case version < oldestServer:
		return guideway.Errorf(guideway.CodeUnavailable, "the server at %s is PostgreSQL %d", s.where, version/10000).
			WithFix("use PostgreSQL %d or newer", oldestServer/10000)
	case encoding != "UTF8":
		return guideway.Errorf(guideway.CodeUnavailable, "the database at %s is encoded as %s", s.where, encoding).
			WithFix("use a database that was made with: createdb --encoding=UTF8 --template=template0 NAME")
	case standby || readOnly == "on":
		return s.readOnly(nil)
	}
	if fsync == "off" {
		s.log.WarnContext(ctx, "the PostgreSQL server runs with fsync=off: a loss of power can lose runs", "server", s.where)
	}
	return nil
}
