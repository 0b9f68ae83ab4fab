// The parts of a real node besides the container runtime, in one binary: the first argument says which part runs.
package main

import (
	"context"
	"fmt"
	"os"

	_ "github.com/coredns/coredns/plugin/bind"
	_ "github.com/coredns/coredns/plugin/cache"
	_ "github.com/coredns/coredns/plugin/errors"
	_ "github.com/coredns/coredns/plugin/forward"
	_ "github.com/coredns/coredns/plugin/kubernetes"

	"github.com/coredns/coredns/coremain"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	proxy "k8s.io/kubernetes/cmd/kube-proxy/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"
)

func main() {
	name := ""
	if len(os.Args) > 1 {
		name, os.Args = os.Args[1], os.Args[1:]
	}
	switch name {
	case "kubelet":
		os.Exit(cli.Run(kubelet.NewKubeletCommand(context.Background())))
	case "kube-proxy":
		os.Exit(cli.Run(proxy.NewProxyCommand()))
	case "coredns":
		coremain.Run()
	default:
		fmt.Fprintln(os.Stderr, "usage: worker kubelet|kube-proxy|coredns")
		os.Exit(2)
	}
}
