package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/zkgo/zkgo/internal/cli/contexts"
	"github.com/zkgo/zkgo/internal/spelling"
)

// Settings of connections. A command that has a flag for a setting also reads it from a variable
// and from a context, under the same name.
var (
	tlsSettings    = []string{"tls", "tls-ca", "tls-cert", "tls-key", "tls-password-file", "tls-server-name", "tls-insecure"}
	clientSettings = append([]string{"server", "context", "timeout", "session-timeout", "readonly", "client-configuration", "auth", "sasl"}, tlsSettings...)
	benchSettings  = append([]string{"server", "context", "session-timeout", "auth"}, tlsSettings...)
	healthSettings = append([]string{"server", "context", "timeout"}, tlsSettings...)
	mirrorSettings = append([]string{"sasl"}, tlsSettings...)
	backupSettings = append([]string{"from", "context", "timeout", "auth"}, tlsSettings...)
)

// The name of the setting of backup's --from, and the setting that only a context has.
const (
	adminSetting = "admin"
	authCommand  = "auth-command"
)

// contextKeys returns the keys that a context may have, and the keys with credentials.
func contextKeys() (keys, secrets []string) {
	for _, name := range append(slices.Clone(clientSettings), adminSetting, authCommand) {
		if name != "context" {
			keys = append(keys, name)
		}
	}
	return keys, []string{"auth", "sasl"}
}

// key returns the name of a flag's setting.
func key(flag string) string {
	if flag == "from" {
		return adminSetting
	}
	return flag
}

// variable returns the environment variable of a setting.
func variable(setting string) string {
	return "ZKGO_" + strings.ToUpper(strings.ReplaceAll(setting, "-", "_"))
}

// settings are the settings of connections that don't come from flags.
type settings struct {
	getenv func(string) string
	file   *contexts.File      // nil if no context is used
	name   string              // the context
	values map[string][]string // of the context
	origin map[string]string   // of a setting: its variable, or the context
}

// loadContexts reads the user's configuration file.
func loadContexts(getenv func(string) string) (*contexts.File, error) {
	path, err := contexts.Path(getenv)
	if err != nil {
		return nil, err
	}
	keys, secrets := contextKeys()
	return contexts.Load(path, keys, secrets)
}

// choose reads the context to use: the one in --context or ZKGO_CONTEXT, or else the current one.
// If given is set, the user has named the servers. Then we don't use the current context, because
// its credentials are for other servers.
func (s *settings) choose(name string, given bool) error {
	name = cmp.Or(name, s.getenv(variable("context")))
	if name == "" && given {
		return nil
	}
	file, err := loadContexts(s.getenv)
	if err != nil {
		return err
	}
	s.name = cmp.Or(name, file.Current)
	if s.name == "" {
		return nil
	}
	s.file = file
	s.values, err = file.Context(s.name)
	if err != nil && name != "" {
		return misusedSetting("context", err)
	}
	if err == nil && s.values["auth"] != nil && s.values[authCommand] != nil {
		err = fmt.Errorf("%s: the context %s has both auth and %s: use one of them", file.Path, s.name, authCommand)
	}
	return err
}

// misusedSetting returns a usage error about a setting.
func misusedSetting(setting string, err error) error { return usagef("--%s: %w", setting, err) }

// lookup returns the values of a setting and their origin, or "" if it is unset.
func (s *settings) lookup(setting string) (values []string, origin string) {
	if v := s.getenv(variable(setting)); v != "" {
		return []string{v}, variable(setting)
	}
	values, ok := s.values[setting]
	if !ok {
		return nil, ""
	}
	values = slices.Clone(values)
	for i, v := range values {
		switch setting {
		case "tls-ca", "tls-cert", "tls-key", "tls-password-file", "client-configuration":
			values[i] = s.file.Beside(v)
		case "auth", "sasl":
			if name, ok := strings.CutPrefix(v, "@"); ok {
				values[i] = "@" + s.file.Beside(name)
			}
		}
	}
	return values, "context " + s.name
}

// resolve sets the flags that weren't given from the environment and the context. Every
// command with such flags calls it before it uses them.
func (f *connectFlags) resolve(cmd *cobra.Command) error {
	flags := cmd.Flags()
	s := settings{getenv: os.Getenv, origin: map[string]string{}}
	given := false
	for _, name := range []string{"from", "server"} { // the second counts if there are both
		if flag := flags.Lookup(name); flag != nil {
			given = flag.Changed || s.getenv(variable(key(name))) != ""
		}
	}
	if err := s.choose(f.context, given); err != nil {
		return err
	}
	var wrong error
	flags.VisitAll(func(flag *pflag.Flag) {
		if wrong != nil || flag.Changed || !slices.Contains(f.registered, flag.Name) || flag.Name == "context" {
			return
		}
		if values, origin := s.lookup(key(flag.Name)); origin != "" {
			s.origin[flag.Name] = origin
			wrong = s.set(flag, values, origin)
		}
	})
	f.settings = s
	if wrong != nil {
		return wrong
	}
	if hint := pathAsServer(cmd); hint != "" {
		return misused(cmd, errors.New(hint))
	}
	return f.runAuthCommand(cmd, flags.Lookup("auth"))
}

// pathAsServer returns an error if --server is a path, which means that the user expected
// the shell's option -s.
func pathAsServer(cmd *cobra.Command) string {
	flag := cmd.Flags().Lookup("server")
	if flag == nil || !strings.HasPrefix(flag.Value.String(), "/") {
		return ""
	}
	return "--server " + flag.Value.String() + ": want host:port,host:port/chroot. Note that -s means --server here; the shell's option -s has a long name"
}

// set gives a flag the values of a setting.
func (s *settings) set(flag *pflag.Flag, values []string, origin string) (err error) {
	list, isList := flag.Value.(pflag.SliceValue)
	switch {
	case isList:
		err = list.Replace(values)
	case len(values) != 1:
		err = errors.New("want one value")
	default:
		err = flag.Value.Set(values[0])
	}
	if err == nil {
		return nil
	}
	if s.origin[flag.Name] == variable(key(flag.Name)) {
		return usagef("%s=%q: %w", origin, values[0], err)
	}
	return fmt.Errorf("%s: the context %s: %s: %w", s.file.Path, s.name, key(flag.Name), err)
}

// runAuthCommand reads the identity from the output of the context's command, if no other setting
// has one.
func (f *connectFlags) runAuthCommand(cmd *cobra.Command, flag *pflag.Flag) error {
	words := f.settings.values[authCommand]
	if len(words) == 0 || f.withoutCommand || flag == nil || flag.Changed || f.settings.origin["auth"] != "" {
		return nil
	}
	if len(words) == 1 {
		words = []string{"sh", "-c", words[0]}
		if runtime.GOOS == "windows" {
			words = []string{"cmd", "/c", words[2]}
		}
	}
	run := exec.CommandContext(cmd.Context(), words[0], words[1:]...) //nolint:gosec // the user's own file names it
	run.Stderr = cmd.ErrOrStderr()
	out, err := run.Output()
	if err != nil {
		return fmt.Errorf("%s: the context %s: %s: %w", f.settings.file.Path, f.settings.name, authCommand, err)
	}
	f.auth = []string{strings.TrimRight(string(out), "\r\n")}
	f.settings.origin["auth"] = "context " + f.settings.name
	return nil
}

// choice is the value of a flag: one of a few words.
type choice struct {
	value *string
	words []string
}

// choiceVar registers a flag with the choices in words; the first is the default.
func choiceVar(flags *pflag.FlagSet, p *string, name, short, usage string, words ...string) {
	*p = words[0]
	flags.VarP(&choice{p, words}, name, short, usage+": "+anyOf(words))
}

// anyOf returns "a, b or c".
func anyOf(words []string) string {
	return strings.Join(words[:len(words)-1], ", ") + " or " + words[len(words)-1]
}

// outputVar registers -o.
func outputVar(flags *pflag.FlagSet, p *string, more ...string) {
	choiceVar(flags, p, "output", "o", "`format` of the output", append([]string{"text", "json"}, more...)...)
}

// String implements pflag.Value.
func (c *choice) String() string { return *c.value }

// Type implements pflag.Value.
func (c *choice) Type() string { return "word" }

// Set implements pflag.Value.
func (c *choice) Set(text string) error {
	if !slices.Contains(c.words, text) {
		return errors.New("want " + anyOf(c.words) + didYouMean(text, c.words))
	}
	*c.value = text
	return nil
}

// didYouMean returns a question about the most similar word, or "".
func didYouMean(word string, words []string) string {
	if near := spelling.Similar(word, words); near != "" {
		return ". Did you mean " + near + "?"
	}
	return ""
}

// completeContexts completes the name of a context.
func completeContexts(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	file, err := loadContexts(os.Getenv)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return file.Names(), cobra.ShellCompDirectiveNoFileComp
}

// completeFlags registers the completion of flags' values in all commands.
func completeFlags(root *cobra.Command) {
	for _, cmd := range root.Commands() {
		completeFlags(cmd)
	}
	root.LocalFlags().VisitAll(func(flag *pflag.Flag) {
		var complete cobra.CompletionFunc
		switch value := flag.Value.(type) {
		case *choice:
			complete = cobra.FixedCompletions(value.words, cobra.ShellCompDirectiveNoFileComp)
		default:
			switch flag.Name {
			case "context":
				complete = completeContexts
			case "server", "timeout", "session-timeout", "sasl", "tls-server-name", "set", "client-port", "port", "epoch":
				complete = cobra.NoFileCompletions
			}
		}
		if complete != nil {
			_ = root.RegisterFlagCompletionFunc(flag.Name, complete) // the flag exists, once
		}
	})
}
