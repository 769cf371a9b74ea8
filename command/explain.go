// SPDX-License-Identifier: Apache-2.0

package command

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/admission-dispatcher/dispatcher/chain"
	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/dispatcher"
)

// explainFlags are the command line of explain.
type explainFlags struct {
	config, cluster, phase, review, decision string
}

func newExplain(o Options) *cobra.Command {
	var flags explainFlags
	cmd := &cobra.Command{
		Use:   "explain --config FILE (--cluster NAME --phase validate|mutate -f REVIEW | --decision LINE)",
		Short: "Say for each webhook, policy and plugin whether a review would be sent to it, and why or why not",
		Long: `Say for each webhook, policy and plugin whether a review would be sent to it, and
why or why not: the bypass, the rule that matched, the order, the form of the
payload. It is the dispatcher's own matching, and no webhook is called. A policy
is evaluated: what it would answer is said (it denies, warns, audits or changes
the object), and what each of its expressions came to. REVIEW is a file with an
AdmissionReview in JSON, or - for standard input.

With --decision instead of the other three it is a line of the decision log that
is explained, by the configuration as it is now.`,
	}
	f := cmd.Flags()
	f.StringVar(&flags.config, "config", "", "the DispatcherConfiguration file")
	f.StringVar(&flags.cluster, "cluster", "", "the Cluster that asks")
	f.StringVar(&flags.phase, "phase", "", "validate or mutate")
	f.StringVarP(&flags.review, "file", "f", "", "the AdmissionReview; - is standard input")
	f.StringVar(&flags.decision, "decision", "", "a file with a line of the decision log; - is standard input")
	_ = cmd.MarkFlagRequired("config") // fails only for a flag that does not exist
	format := outputFlag(cmd)
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if err := flags.validate(); err != nil {
			return err
		}
		return cobra.NoArgs(cmd, args)
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		explanation, err := explain(cmd, o, flags)
		if err != nil {
			return err
		}
		if *format == asJSON {
			return printJSON(cmd.OutOrStdout(), explanation)
		}
		return printExplanation(cmd.OutOrStdout(), explanation)
	}
	return cmd
}

// validate checks which flags stand beside which.
func (f *explainFlags) validate() error {
	var missing []string
	for _, flag := range []struct{ name, value string }{{"cluster", f.cluster}, {"phase", f.phase}, {"file", f.review}} {
		switch {
		case f.decision == "" && flag.value == "":
			missing = append(missing, strconv.Quote(flag.name))
		case f.decision != "" && flag.value != "":
			return fmt.Errorf("--%s cannot stand beside --decision, which says it", flag.name)
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("required flag(s) %s not set", strings.Join(missing, ", "))
	}
	if _, ok := parsePhase(f.phase); !ok && f.decision == "" {
		return fmt.Errorf("--phase must be validate or mutate, not %q", f.phase)
	}
	return nil
}

func parsePhase(s string) (chain.Phase, bool) {
	for _, p := range []chain.Phase{chain.Validating, chain.Mutating} {
		if p.String() == s {
			return p, true
		}
	}
	return 0, false
}

func explain(cmd *cobra.Command, o Options, flags explainFlags) (*dispatcher.Explanation, error) {
	cfg, err := loadConfig(cmd.ErrOrStderr(), flags.config)
	if err != nil {
		return nil, err
	}
	if flags.decision != "" {
		return explainDecision(cmd, o, cfg, flags.decision)
	}
	cluster, err := compiledCluster(cmd.ErrOrStderr(), o, cfg, flags.cluster)
	if err != nil {
		return nil, err
	}
	data, err := readFile(cmd.InOrStdin(), flags.review)
	if err != nil {
		return nil, err
	}
	phase, _ := parsePhase(flags.phase)
	explanation, err := explainReview(data, cluster, phase)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", flags.review, err)
	}
	return explanation, nil
}

func explainReview(data []byte, cluster *chain.Cluster, phase chain.Phase) (*dispatcher.Explanation, error) {
	review := codec.AcquireReview()
	defer codec.ReleaseReview(review)
	body := codec.NewBody(data, nil)
	defer body.Release()
	if err := review.Decode(body); err != nil {
		return nil, err
	}
	explanation := dispatcher.Explain(review, cluster, phase)
	return &explanation, nil
}

func readFile(stdin io.Reader, path string) ([]byte, error) {
	if path == "-" {
		return io.ReadAll(stdin)
	}
	return os.ReadFile(path)
}

func printExplanation(w io.Writer, e *dispatcher.Explanation) error {
	_, _ = fmt.Fprintf(w, "cluster %s, phase %s\n", e.Cluster, e.Phase)
	if e.Note != "" {
		_, _ = fmt.Fprintf(w, "note: %s\n", e.Note)
	}
	if e.Bypass != "" {
		_, _ = fmt.Fprintf(w, "bypassed by rule %q: nobody is called; without it:\n", e.Bypass)
	}
	if e.FailOpen != "" {
		_, _ = fmt.Fprintf(w, "failOpen rule %q: no failing call blocks this request\n", e.FailOpen)
	}
	if len(e.Webhooks) == 0 {
		_, err := fmt.Fprintln(w, "there are no webhooks for this cluster and phase")
		return err
	}
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(tw, "ORDER\tWEBHOOK\tCALLED\tWHY\tPAYLOAD\tMODE\tPOLICY\tTIMEOUT")
	for i := range e.Webhooks {
		x := &e.Webhooks[i]
		_, _ = fmt.Fprintf(tw, "%s\t%s/%s\t%s\t%s\t%s\t%s\t%s\t%s\n", orderText(x), x.Configuration, x.Webhook,
			yesNo(x.Called), whyText(x), dash(x.Payload), x.Mode, x.FailurePolicy, x.Timeout)
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	printSteps(w, e)
	if e.Paths < 2 {
		return nil
	}
	return printPaths(w, e)
}

// printSteps says what policies would answer, and how each comes to that.
func printSteps(w io.Writer, e *dispatcher.Explanation) {
	for i := range e.Webhooks {
		x := &e.Webhooks[i]
		if x.Answer == "" {
			continue
		}
		_, _ = fmt.Fprintf(w, "\n%s/%s %s\n", x.Configuration, x.Webhook, strings.Join(strings.Fields(x.Answer), " "))
		for _, step := range x.Steps {
			_, _ = fmt.Fprintf(w, "  %s\n", strings.Join(strings.Fields(step), " "))
		}
	}
}

// printPaths says what the API server calls for which webhook, where that differs.
func printPaths(w io.Writer, e *dispatcher.Explanation) error {
	_, _ = fmt.Fprintln(w, "\nwebhooks list different versions or groups of a resource, so the cluster calls several paths, each with the form that its webhooks list:")
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(tw, "WEBHOOK\tPATH")
	for i := range e.Webhooks {
		_, _ = fmt.Fprintf(tw, "%s/%s\t%s\n", e.Webhooks[i].Configuration, e.Webhooks[i].Webhook, e.Webhooks[i].Path)
	}
	return tw.Flush()
}

func orderText(x *dispatcher.WebhookExplained) string {
	if x.Order == 0 {
		return "-"
	}
	return fmt.Sprint(x.Order)
}

// whyText is the rule of a webhook that is called, the reason of one that is not.
func whyText(x *dispatcher.WebhookExplained) string {
	switch {
	case x.Called:
		return "rule: " + x.Rule
	case x.Detail != "":
		return x.Reason + ": " + strings.Join(strings.Fields(x.Detail), " ")
	}
	return x.Reason
}

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
