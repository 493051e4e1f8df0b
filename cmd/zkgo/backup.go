package main

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/zkgo/zkgo/internal/cli"
	"github.com/zkgo/zkgo/internal/cli/diagnose"
	"github.com/zkgo/zkgo/internal/offline/backup"
	"github.com/zkgo/zkgo/internal/offline/inspect"
	"github.com/zkgo/zkgo/internal/version"
)

// backupFlags contains the flags of zkgo backup.
type backupFlags struct {
	connectFlags
	noVerify    bool
	force       bool
	output      string
	retry, keep int
}

func backupCommand() *cobra.Command {
	var f backupFlags
	cmd := &cobra.Command{
		Use:   "backup FILE",
		Short: "Back up a running cluster",
		Long: `Back up a running cluster into a new file. Use - as FILE for the standard output.

The command downloads a snapshot from an AdminServer (commands/snapshot of ZooKeeper
3.9), either zkgo's or Apache ZooKeeper's. A snapshot of zkgo is consistent and
contains all writes that were acknowledged before the download, under any load. A
snapshot that Apache ZooKeeper writes while clients write is inconsistent without the
transaction log; the command rejects such a snapshot.

The backup is compressed and checksummed, and records its source and time. The file
gets its name only after it has been written to disk, read back and compared with its
digest. It is not encrypted; only its owner can read it.

--auth must name the super user or an identity with all permissions on the root
znode, e.g. digest:user:password. ZKGO_AUTH keeps it out of the process list.`,
		Example: `  zkgo backup --auth @/etc/zkgo/backup-auth --from http://localhost:8080 zk-$(date +%F).zkb
  ZKGO_AUTH=digest:super:secret zkgo backup --from https://zk1:8080 --tls-ca ca.pem zk.zkb
  zkgo backup --from zk1:8080 --from zk2:8080 - | ssh vault 'cat > zk.zkb'
  zkgo backup verify zk.zkb`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.resolve(cmd); err != nil {
				return err
			}
			if len(f.from) == 0 {
				return usagef("no server: name an AdminServer with --from, %s or %s in a context", variable(adminSetting), adminSetting)
			}
			return runBackup(cmd.Context(), &f, args[0], cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	flags := cmd.Flags()
	f.register(flags, backupSettings)
	flags.BoolVar(&f.noVerify, "no-verify", false, "do not read the file back (reading it needs memory for the whole tree)")
	flags.BoolVar(&f.force, "force", false, "replace FILE, a regular file or a symlink to one, once the new backup is complete")
	keepVar(flags, &f.keep)
	flags.IntVar(&f.retry, "retry", 3, "how often to retry a server that rejects the request because of its snapshot rate limit")
	outputVar(flags, &f.output)
	cmd.AddCommand(backupVerifyCommand(), backupExtractCommand())
	return cmd
}

// backupResult is the result to print.
type backupResult struct{ backup.Result }

// Text implements texter.
func (r backupResult) Text(w io.Writer) error {
	fmt.Fprintf(w, "%s: zxid %s of %s, taken %s\n", r.Path, r.Header.Zxid, r.Header.Source, r.Header.Taken.Format(time.RFC3339))
	if r.Checked {
		_, err := fmt.Fprintf(w, "%s, %s, %s; read back and compared with its digest\n", count(r.Znodes, "znode"), count(r.Session, "session"), count(r.Bytes, "byte"))
		return err
	}
	if r.Znodes > 0 {
		_, err := fmt.Fprintf(w, "%s, %s, %s; read back, has no digest\n", count(r.Znodes, "znode"), count(r.Session, "session"), count(r.Bytes, "byte"))
		return err
	}
	_, err := fmt.Fprintf(w, "%d bytes; not read back\n", r.Bytes)
	return err
}

func runBackup(ctx context.Context, f *backupFlags, path string, stdout, stderr io.Writer) error {
	out := resultFlags{output: f.output}
	if err := checkKeep(f.keep, path); err != nil {
		return err
	}
	client, err := f.client()
	if err != nil {
		return err
	}
	auth, err := adminAuth(f.auth)
	if err != nil {
		return err
	}
	if f.force && path != "-" {
		if path, err = cli.Replaceable(path); err != nil {
			return fmt.Errorf("--force: %w", err)
		}
	}
	created := "zkgo " + version.Own()
	var errs []error
	for _, from := range f.from {
		src := backup.Source{URL: from, Auth: auth, Client: client, Retry: f.retry, Pause: time.Second}
		if path == "-" {
			// We can't undo output to stdout, so we use only the first server.
			h, end, err := backup.Stream(ctx, src, stdout, created)
			if err == nil {
				fmt.Fprintf(stderr, "zxid %s of %s, %d bytes; not read back\n", h.Zxid, h.Source, end.Bytes)
			}
			return f.explain(ctx, from, err)
		}
		r, err := f.take(ctx, src, path, created)
		if err == nil {
			return errors.Join(out.print(stdout, backupResult{r}), prune(f.keep, path))
		}
		errs = append(errs, f.explain(ctx, from, err))
		if ctx.Err() != nil || errors.Is(err, os.ErrExist) {
			break
		}
	}
	return errors.Join(errs...)
}

// keepVar registers --keep.
func keepVar(flags *pflag.FlagSet, keep *int) {
	flags.IntVar(keep, "keep", 0, "then remove all but the `N` newest files with FILE's extension, .zkb or .unverified, in its directory; 0 keeps all")
}

// prune removes older backups with --keep.
func prune(keep int, path string) error {
	if keep == 0 {
		return nil
	}
	return removeOlder(keep, path)
}

// explain explains why an AdminServer is unreachable, in the same words as all commands
// that connect.
func (f *backupFlags) explain(ctx context.Context, source string, err error) error {
	var request *url.Error
	if !errors.As(err, &request) {
		return err
	}
	addr, config := "", (*tls.Config)(nil)
	if u, bad := url.Parse(request.URL); bad == nil {
		if addr = u.Host; u.Port() == "" {
			addr = net.JoinHostPort(u.Hostname(), u.Scheme)
		}
		if u.Scheme == "https" {
			config = &tls.Config{MinVersion: tls.VersionTLS12}
		}
	}
	port := "--from is the URL of an AdminServer (admin.serverPort), and not the port for ZooKeeper clients"
	return diagnose.Explain(ctx, addr, config, diagnose.Terms{
		CA: "--tls-ca, or skip the check with --tls-insecure", Cert: "--tls-cert and --tls-key", Name: "connect by a name that is in the certificate", Auth: "--auth",
		UseTLS: "use https:// in --from (and --tls-ca if needed)", NoTLS: "use http:// in --from",
		Closed: "it may expect TLS (https://), or be another port: " + port, Serves: "a ZooKeeper client would be served there: " + port,
	}, fmt.Errorf("--from %s: %w", source, err))
}

// take writes a backup. With --force, a complete backup replaces an older file.
func (f *backupFlags) take(ctx context.Context, src backup.Source, path, created string) (backup.Result, error) {
	if !f.force {
		r, err := backup.Take(ctx, src, path, created, !f.noVerify)
		if errors.Is(err, os.ErrExist) {
			err = fmt.Errorf("%w; name another file, or replace it with --force", err)
		}
		return r, err
	}
	fresh := fmt.Sprintf("%s.%d.new", path, os.Getpid())
	r, err := backup.Take(ctx, src, fresh, created, !f.noVerify)
	if err != nil {
		return r, err
	}
	r.Path = path
	if err := os.Rename(fresh, path); err != nil {
		return r, errors.Join(err, os.Remove(fresh))
	}
	return r, nil
}

// adminAuth converts scheme:credentials, the format of every other --auth, to the
// AdminServer's format, which has a space. We also accept that format, and a scheme alone. @FILE
// reads each form from a file.
func adminAuth(identities []string) (string, error) {
	switch len(identities) {
	case 0:
		return "", nil
	case 1:
	default:
		return "", usagef("--auth: an AdminServer accepts one identity, got %d", len(identities))
	}
	text, err := secretText("--auth", identities[0])
	if err != nil {
		return "", err
	}
	scheme, credentials, ok := strings.Cut(text, ":")
	if !ok || strings.Contains(scheme, " ") {
		return text, nil
	}
	return scheme + " " + credentials, nil
}

// client returns an HTTP client, with TLS if configured.
func (f *backupFlags) client() (*http.Client, error) {
	config, err := f.tlsConfig()
	if err != nil {
		return nil, err
	}
	for i, from := range f.from {
		if f.tls && !strings.Contains(from, "://") {
			f.from[i] = "https://" + from
		}
	}
	dialer := &net.Dialer{Timeout: f.timeout}
	return &http.Client{Transport: &http.Transport{
		TLSClientConfig: config, Proxy: http.ProxyFromEnvironment, DialContext: dialer.DialContext, TLSHandshakeTimeout: f.timeout,
	}}, nil
}

// contentInfo describes a backup or a snapshot.
type contentInfo struct {
	Path     string         `json:"path"`
	Kind     backup.Kind    `json:"kind"`
	Header   *backup.Header `json:"header,omitempty"`
	Zxid     inspect.Hex    `json:"zxid"`
	Znodes   int            `json:"znodes"`
	Bytes    int64          `json:"bytes"`
	Sessions int            `json:"sessions"`
	Owned    int            `json:"ephemerals"`
	Verified bool           `json:"digestVerified"`
}

func describe(path string, c *backup.Content) contentInfo {
	return contentInfo{
		Path: path, Kind: c.Kind, Header: c.Header, Zxid: inspect.Hex(c.Tree.LastZxid()), Znodes: c.Tree.NodeCount() - 1, Bytes: c.Tree.DataSize(),
		Sessions: c.Sessions.Len(), Owned: c.Tree.EphemeralCount(), Verified: c.Verified,
	}
}

// Text implements texter.
func (i contentInfo) Text(w io.Writer) error {
	fmt.Fprintf(w, "%s: %s at zxid %v\n", i.Path, i.Kind, i.Zxid)
	if h := i.Header; h != nil {
		fmt.Fprintf(w, "taken %s of %s", h.Taken.Format(time.RFC3339), h.Source)
		if h.State != "" {
			fmt.Fprintf(w, ", %s", h.State)
		}
		if h.Server != "" {
			fmt.Fprintf(w, ", version %s", h.Server)
		}
		fmt.Fprintln(w)
	}
	digest := "digest matches"
	if !i.Verified {
		digest = "no digest to compare with"
	}
	_, err := fmt.Fprintf(w, "%s, %s, %s, %s; all checksums match, %s\n",
		count(i.Znodes, "znode"), count(i.Bytes, "byte"), count(i.Sessions, "session"), count(i.Owned, "ephemeral"), digest)
	return err
}

func backupVerifyCommand() *cobra.Command {
	out, keep, rename := resultFlags{}, 0, ""
	cmd := &cobra.Command{
		Use:   "verify FILE",
		Short: "Verify a backup",
		Long: `Read a whole backup, check all checksums, load the tree and compare it with the
backup's digest. zkgo restore makes the same checks before it writes anything. Use -
as FILE to read the standard input.

With --keep, it removes older backups only if this one is valid. With --rename, a
backup gets its name only after it is verified, so a damaged one is never counted.`,
		Example: `  zkgo backup verify zk.zkb -o json
  zkgo backup verify zk.unverified --rename zk.zkb --keep 14
  ssh vault cat zk.zkb | zkgo backup verify -`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			path := cmp.Or(rename, args[0])
			if err := checkKeep(keep, path); err != nil {
				return err
			}
			if rename != "" && args[0] == standardInput {
				return usagef("--rename: the standard input has no name")
			}
			name, c, err := loadBackup(args[0], stdin(cmd))
			if err != nil {
				return err
			}
			if rename != "" {
				if err := backup.Rename(args[0], rename); err != nil {
					return err
				}
				name = rename
			}
			return errors.Join(out.print(cmd.OutOrStdout(), describe(name, c)), prune(keep, path))
		},
	}
	keepVar(cmd.Flags(), &keep)
	cmd.Flags().StringVar(&rename, "rename", "", "give a whole backup this `name`, which no file has yet")
	outputVar(cmd.Flags(), &out.output)
	return cmd
}

func backupExtractCommand() *cobra.Command {
	out := resultFlags{}
	cmd := &cobra.Command{
		Use:   "extract FILE DIR",
		Short: "Extract the snapshot of a backup for Apache ZooKeeper",
		Long: `Extract the snapshot of a backup as snapshot.<zxid>, which Apache ZooKeeper loads from
version-2 of an otherwise empty dataDir. Use - as FILE to read the standard input.`,
		Example: `  zkgo backup extract zk.zkb /var/lib/zookeeper/version-2`,
		Args:    cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := named(cmd, "the snapshot's name depends on its content", args[1]); err != nil {
				return err
			}
			file := args[0]
			if file == standardInput {
				spooled, remove, err := spool(stdin(cmd))
				if err != nil {
					return fmt.Errorf("%s: %w", inputName, err)
				}
				defer remove()
				file = spooled
			}
			path, err := backup.ExtractTo(file, args[1])
			if errors.Is(err, os.ErrExist) {
				return fmt.Errorf("%w; name another directory, or remove the file first", err)
			}
			if err != nil {
				return err
			}
			return out.print(cmd.OutOrStdout(), extracted{path})
		},
	}
	outputVar(cmd.Flags(), &out.output)
	return cmd
}

// extracted is the result to print.
type extracted struct {
	Path string `json:"path"`
}

// Text implements texter.
func (e extracted) Text(w io.Writer) error {
	_, err := fmt.Fprintln(w, e.Path)
	return err
}

// restoreFlags contains the flags of zkgo restore.
type restoreFlags struct {
	serverFlags
	resultFlags
	epoch  uint32
	dryRun bool
}

func restoreCommand() *cobra.Command {
	f := restoreFlags{serverFlags: serverFlags{logFormat: "text", logLevel: "warn"}}
	cmd := &cobra.Command{
		Use:   "restore BACKUP [zoo.cfg]",
		Short: "Create a new cluster from a backup",
		Long: `Create the data directory of a new cluster from a backup, from a snapshot file of
Apache ZooKeeper, or from a snapshot directory of zkgo. The configured directories
must not contain any state. Use - as BACKUP to read the standard input.

In an ensemble, restore one server and start it; it serves alone. Only then start the
others, with empty data directories and their myid files: they join and receive the
state.

Writes made after the backup are lost. To make sure that clients notice, all sessions
and their ephemeral znodes are removed, and the epoch increases by 256, or to --epoch,
so that new zxids are higher than any that a client has seen.`,
		Example: `  zkgo restore --dry-run zk.zkb /etc/zookeeper/zoo.cfg
  zkgo restore zk.zkb /etc/zookeeper/zoo.cfg
  ssh vault cat zk.zkb | zkgo restore - /etc/zookeeper/zoo.cfg
  zkgo restore snapshot.100001a2b --data-dir /var/lib/zkgo`,
		Args: cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.name(cmd, args[1:]); err != nil {
				return err
			}
			if args[0] == standardInput && f.config == standardInput {
				return usagef("%s: the standard input can't be both the backup and the configuration: use a file for one of them", cmd.CommandPath())
			}
			return runRestore(&f, args[0], cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	flags := cmd.Flags()
	f.reading(flags, "of the data (zoo.cfg: dataDir)")
	outputVar(flags, &f.output)
	flags.Uint32Var(&f.epoch, "epoch", 0, "minimum `epoch` of the new ensemble, if clients may have seen a higher one")
	flags.BoolVar(&f.dryRun, "dry-run", false, "only verify the backup, and print what restore would do")
	return cmd
}

func runRestore(f *restoreFlags, path string, stdout, stderr io.Writer) error {
	z, err := f.zooCfg()
	if err != nil {
		return err
	}
	cfg, err := runnable(z)
	if err != nil {
		return err
	}
	if cfg.Logger, err = newLogger(stderr, f.logFormat, f.logLevel); err != nil {
		return err
	}
	if err := cfg.CheckEmpty(); err != nil {
		return stateError(err)
	}
	name, c, err := loadBackup(path, f.stdin)
	if err != nil {
		return err
	}
	result := restoreResult{Backup: describe(name, c), DryRun: f.dryRun}
	if f.dryRun {
		return f.print(stdout, result)
	}
	r, err := cfg.Restore(c.Tree, c.Sessions, f.epoch)
	if err != nil {
		return stateError(err)
	}
	result.DataDir, result.Cluster, result.Zxid = cfg.DataDir, r.Cluster, inspect.Hex(r.Zxid)
	if len(cfg.Quorum.Members) > 0 {
		result.others = strings.TrimPrefix(membersOf(&cfg), "servers ")
	}
	return f.print(stdout, result)
}

// restoreResult is the result to print.
type restoreResult struct {
	Backup  contentInfo `json:"backup"`
	DryRun  bool        `json:"dryRun"`
	DataDir string      `json:"dataDir,omitempty"`
	Cluster string      `json:"ensemble,omitempty"`
	Zxid    inspect.Hex `json:"zxid,omitempty"`
	others  string
}

// Text implements texter.
func (r restoreResult) Text(w io.Writer) error {
	if err := r.Backup.Text(w); err != nil || r.DryRun {
		return err
	}
	_, err := fmt.Fprintf(w, "Restored to %s: ensemble %s, first zxid %v.\n", r.DataDir, r.Cluster, r.Zxid)
	if r.others != "" {
		_, err = fmt.Fprintf(w, "Start this server. Once it serves, start the others of %s with empty directories.\n", r.others)
	}
	return err
}

// The extensions of the files that --keep counts, each on its own.
const (
	backupExtension     = ".zkb"
	unverifiedExtension = ".unverified"
)

// partialAge is the age at which the rest of an interrupted backup is removed.
const partialAge = 24 * time.Hour

// checkKeep checks --keep before we write a backup.
func checkKeep(keep int, path string) error {
	switch ext := filepath.Ext(path); {
	case keep < 0:
		return usagef("--keep %d: want the number of backups to keep; 0 keeps all", keep)
	case keep > 0 && ext != backupExtension && ext != unverifiedExtension:
		return usagef("--keep counts files with names that end in %s or %s; %s does not", backupExtension, unverifiedExtension, path)
	}
	return nil
}

// removeOlder removes all backups in the directory of path but the newest ones with the same
// extension, and the partial files of killed backups. It never removes path itself.
func removeOlder(keep int, path string) error {
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		return err
	}
	var old, others []os.FileInfo
	for _, e := range entries {
		info, err := e.Info()
		switch {
		case err != nil || !info.Mode().IsRegular() || e.Name() == filepath.Base(path):
		case filepath.Ext(e.Name()) == filepath.Ext(path):
			others = append(others, info)
		case backup.Partial(e.Name()) && time.Since(info.ModTime()) > partialAge:
			old = append(old, info)
		}
	}
	slices.SortFunc(others, func(a, b os.FileInfo) int {
		return cmp.Or(b.ModTime().Compare(a.ModTime()), cmp.Compare(b.Name(), a.Name()))
	})
	var errs []error
	for _, info := range slices.Concat(old, others[min(keep-1, len(others)):]) {
		errs = append(errs, os.Remove(filepath.Join(filepath.Dir(path), info.Name())))
	}
	return errors.Join(errs...)
}
