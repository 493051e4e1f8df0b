package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/zkgo/zkgo/internal/learner"
	"github.com/zkgo/zkgo/internal/offline/migrate"
	"github.com/zkgo/zkgo/internal/offline/zkfiles"
	"github.com/zkgo/zkgo/internal/takeover"
	"github.com/zkgo/zkgo/server"
)

// mirrorFlags holds the flags of zkgo mirror.
type mirrorFlags struct {
	server serverFlags
	from   string
	id     int64
}

func mirrorCommand() *cobra.Command {
	var f mirrorFlags
	cmd := &cobra.Command{
		Use:   "mirror [zoo.cfg]",
		Short: "Follow a running Apache ZooKeeper ensemble, and take over from it",
		Args:  cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.server.name(cmd, args); err != nil {
				return err
			}
			return f.run(cmd.Context(), cmd.ErrOrStderr())
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.from, "from", "", "`servers` of the ensemble to follow: host:quorumport, separated by commas")
	flags.Int64Var(&f.id, "observer-id", 200, "`number` by which the ensemble knows this observer; none of its servers may have it")
	f.server.reading(flags, "for the data (zoo.cfg: dataDir; default ./zkgo-data)")
	f.server.port(flags, "for clients (zoo.cfg: clientPort; default 2181)")
	f.server.logging(flags)
	cmd.AddCommand(mirrorStatusCommand())
	return cmd
}

// run runs a server that follows the ensemble.
func (f *mirrorFlags) run(ctx context.Context, stderr io.Writer) error {
	if f.from == "" {
		return usagef("zkgo mirror: name the ensemble's servers with --from host:quorumport,...")
	}
	return runServer(ctx, &f.server, stderr, func(cfg *server.Config) func(context.Context, *server.Server) (<-chan struct{}, error) {
		mirror := takeover.New(takeover.Config{
			Learner: learner.Config{Addrs: strings.Split(f.from, ","), ID: f.id, Limits: zkfiles.Limits{MaxField: migrate.MaxField(cfg)}},
			Logger:  cfg.Logger,
		})
		cfg.Env.Mirror = mirror
		dir := cfg.DataDir
		return func(ctx context.Context, s *server.Server) (<-chan struct{}, error) {
			return mirror.Serve(ctx, dir, s.Node())
		}
	})
}

func mirrorStatusCommand() *cobra.Command {
	var f serverFlags
	cmd := &cobra.Command{
		Use:   "status [zoo.cfg]",
		Short: "Show how far the mirror of a server is",
		Args:  cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.name(cmd, args); err != nil {
				return err
			}
			z, err := f.zooCfg()
			if err != nil {
				return err
			}
			s, err := takeover.NewClient(z.DataDir).Status(cmd.Context())
			if err != nil {
				return err
			}
			b, err := json.MarshalIndent(s, "", "  ")
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), string(b))
			return err
		},
	}
	f.reading(cmd.Flags(), "of the server")
	return cmd
}
