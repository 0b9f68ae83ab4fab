// A stand-in for Kourier, Contour or Istio: one process without Envoy that does what Knative Serving expects of an ingress (the KIngress contract).
// It watches the KIngresses of its class, ends TLS by SNI with their Secrets, routes by host, path and headers to ready endpoints, and sets their status.
package main

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httputil"
	"os/signal"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	discoverylisters "k8s.io/client-go/listers/discovery/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"knative.dev/networking/pkg/apis/networking"
	"knative.dev/networking/pkg/apis/networking/v1alpha1"
	"knative.dev/networking/pkg/client/clientset/versioned"
	knative "knative.dev/networking/pkg/client/informers/externalversions"
	networkinglisters "knative.dev/networking/pkg/client/listers/networking/v1alpha1"
	"knative.dev/networking/pkg/ingress"
)

const (
	class   = "stand-in.ingress.networking.knative.dev"
	public  = "ingress.knative-serving.svc.cluster.local"       // the Services of ingress.yaml: ports 8080 and 8443,
	private = "ingress-local.knative-serving.svc.cluster.local" // and 8081
)

// table is what the proxy routes by. A new one replaces it when anything changes; it is never modified.
type table struct {
	paths map[v1alpha1.IngressVisibility]map[string][]v1alpha1.HTTPIngressPath // by host, the most specific first
	certs map[string]*tls.Certificate
	https sets.Set[string] // hosts whose plain HTTP is redirected
}

type controller struct {
	client    versioned.Interface
	ingresses networkinglisters.IngressLister
	secrets   corelisters.SecretLister
	services  corelisters.ServiceLister
	slices    discoverylisters.EndpointSliceLister
	table     atomic.Pointer[table]
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	config, err := rest.InClusterConfig()
	must(err)
	config.QPS = -1
	core := informers.NewSharedInformerFactory(kubernetes.NewForConfigOrDie(config), 0)
	networks := knative.NewSharedInformerFactory(versioned.NewForConfigOrDie(config), 0)
	c := &controller{
		client:    versioned.NewForConfigOrDie(config),
		ingresses: networks.Networking().V1alpha1().Ingresses().Lister(),
		secrets:   core.Core().V1().Secrets().Lister(),
		services:  core.Core().V1().Services().Lister(),
		slices:    core.Discovery().V1().EndpointSlices().Lister(),
	}
	changed := make(chan struct{}, 1)
	note := func() {
		select {
		case changed <- struct{}{}:
		default:
		}
	}
	on := cache.ResourceEventHandlerFuncs{AddFunc: func(any) { note() }, UpdateFunc: func(_, _ any) { note() }, DeleteFunc: func(any) { note() }}
	for _, informer := range []cache.SharedIndexInformer{networks.Networking().V1alpha1().Ingresses().Informer(),
		core.Core().V1().Secrets().Informer(), core.Core().V1().Services().Informer()} {
		_, err := informer.AddEventHandler(on)
		must(err)
	}
	core.Start(ctx.Done())
	networks.Start(ctx.Done())
	core.WaitForCacheSync(ctx.Done())
	networks.WaitForCacheSync(ctx.Done())
	c.reconcile(ctx)

	servers := []*http.Server{
		{Addr: ":8080", Handler: c.listener(v1alpha1.IngressVisibilityExternalIP)},
		{Addr: ":8081", Handler: c.listener(v1alpha1.IngressVisibilityClusterLocal)},
		{Addr: ":8443", Handler: c.listener(v1alpha1.IngressVisibilityExternalIP), TLSConfig: &tls.Config{GetCertificate: c.certificate}},
	}
	for _, server := range servers {
		go func() {
			err := http.ErrServerClosed
			if server.TLSConfig != nil {
				err = server.ListenAndServeTLS("", "")
			} else {
				err = server.ListenAndServe()
			}
			if !errors.Is(err, http.ErrServerClosed) {
				log.Fatal(err)
			}
		}()
	}
	for {
		select {
		case <-changed:
			c.reconcile(ctx)
		case <-ctx.Done():
			time.Sleep(5 * time.Second) // until no proxy sends new connections here
			for _, server := range servers {
				must(server.Shutdown(context.Background()))
			}
			return
		}
	}
}

// reconcile puts all KIngresses into a new table, and sets their status to ready afterwards.
func (c *controller) reconcile(ctx context.Context) {
	all, err := c.ingresses.List(labels.Everything())
	must(err)
	slices.SortFunc(all, func(a, b *v1alpha1.Ingress) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) })
	next := &table{map[v1alpha1.IngressVisibility]map[string][]v1alpha1.HTTPIngressPath{
		v1alpha1.IngressVisibilityExternalIP: {}, v1alpha1.IngressVisibilityClusterLocal: {}}, map[string]*tls.Certificate{}, sets.New[string]()}
	statuses := map[*v1alpha1.Ingress]v1alpha1.IngressStatus{}
	for _, ing := range all {
		if ing.Annotations[networking.IngressClassAnnotationKey] != class || ing.DeletionTimestamp != nil {
			continue
		}
		status := ing.DeepCopy().Status
		status.InitializeConditions()
		status.ObservedGeneration = ing.Generation
		if err := c.add(next, ing.DeepCopy()); err != nil {
			status.MarkLoadBalancerFailed("NotConfigured", err.Error())
		} else {
			status.MarkNetworkConfigured()
			status.MarkLoadBalancerReady([]v1alpha1.LoadBalancerIngressStatus{{DomainInternal: public}}, []v1alpha1.LoadBalancerIngressStatus{{DomainInternal: private}})
		}
		statuses[ing] = status
	}
	c.table.Store(next)
	for ing, status := range statuses {
		if equality.Semantic.DeepEqual(ing.Status, status) {
			continue
		}
		update := ing.DeepCopy()
		update.Status = status
		if _, err := c.client.NetworkingV1alpha1().Ingresses(ing.Namespace).UpdateStatus(ctx, update, metav1.UpdateOptions{}); err != nil {
			log.Printf("status of %s/%s: %v", ing.Namespace, ing.Name, err) // after a conflict, the change that caused it brings us back here
		}
	}
}

func (c *controller) add(next *table, ing *v1alpha1.Ingress) error {
	if _, err := ingress.InsertProbe(ing); err != nil { // paths that answer K-Network-Hash: override
		return err
	}
	certs := map[string]*tls.Certificate{}
	for _, entry := range ing.Spec.TLS {
		secret, err := c.secrets.Secrets(entry.SecretNamespace).Get(entry.SecretName)
		if err != nil {
			return err
		}
		cert, err := tls.X509KeyPair(secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey])
		if err != nil {
			return fmt.Errorf("secret %s/%s: %w", entry.SecretNamespace, entry.SecretName, err)
		}
		for _, host := range entry.Hosts {
			certs[host] = &cert
		}
	}
	for _, rule := range ing.Spec.Rules {
		for _, path := range rule.HTTP.Paths {
			for _, split := range path.Splits {
				if _, err := c.services.Services(split.ServiceNamespace).Get(split.ServiceName); err != nil {
					return err
				}
			}
		}
	}
	for host, cert := range certs {
		next.certs[host] = cert
	}
	for _, rule := range ing.Spec.Rules {
		paths := slices.SortedStableFunc(slices.Values(rule.HTTP.Paths), func(a, b v1alpha1.HTTPIngressPath) int {
			return cmp.Or(len(b.Path)-len(a.Path), len(b.Headers)-len(a.Headers))
		})
		for host := range ingress.ExpandedHosts(sets.New(rule.Hosts...)) {
			next.paths[rule.Visibility][host] = paths
			if rule.Visibility == v1alpha1.IngressVisibilityExternalIP { // reachable from inside the cluster, too
				if _, taken := next.paths[v1alpha1.IngressVisibilityClusterLocal][host]; !taken {
					next.paths[v1alpha1.IngressVisibilityClusterLocal][host] = paths
				}
				if ing.Spec.HTTPOption == v1alpha1.HTTPOptionRedirected {
					next.https.Insert(host)
				}
			}
		}
	}
	return nil
}

func (c *controller) certificate(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	if cert := c.table.Load().certs[strings.ToLower(hello.ServerName)]; cert != nil {
		return cert, nil
	}
	return nil, fmt.Errorf("no certificate for %q", hello.ServerName)
}

var (
	http1 = &http.Transport{MaxIdleConnsPerHost: 100, IdleConnTimeout: time.Minute, DisableCompression: true}
	h2c   = &http.Transport{Protocols: new(http.Protocols)}
)

func init() { h2c.Protocols.SetUnencryptedHTTP2(true) }

func (c *controller) listener(visibility v1alpha1.IngressVisibility) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host := strings.ToLower(r.Host)
		if name, _, err := net.SplitHostPort(host); err == nil {
			host = name
		}
		now := c.table.Load()
		found := slices.IndexFunc(now.paths[visibility][host], func(path v1alpha1.HTTPIngressPath) bool { return matches(path, r) })
		if found < 0 {
			http.NotFound(w, r)
			return
		}
		if r.TLS == nil && visibility == v1alpha1.IngressVisibilityExternalIP && now.https.Has(host) {
			http.Redirect(w, r, "https://"+host+r.URL.RequestURI(), http.StatusMovedPermanently)
			return
		}
		path := now.paths[visibility][host][found]
		split := choose(path.Splits)
		backend, transport, err := c.backend(split.IngressBackend)
		if err != nil {
			log.Printf("%s %s%s: %v", r.Method, host, r.URL.Path, err)
			http.Error(w, "no healthy upstream", http.StatusServiceUnavailable)
			return
		}
		proxy := httputil.ReverseProxy{Transport: transport, FlushInterval: -1, Rewrite: func(pr *httputil.ProxyRequest) {
			pr.Out.URL.Scheme, pr.Out.URL.Host, pr.Out.Host = "http", backend, cmp.Or(path.RewriteHost, pr.In.Host)
			pr.Out.Header["X-Forwarded-For"] = pr.In.Header["X-Forwarded-For"]
			pr.SetXForwarded()
			if proto := pr.In.Header.Get("X-Forwarded-Proto"); proto != "" && visibility == v1alpha1.IngressVisibilityClusterLocal { // set by us before
				pr.Out.Header.Set("X-Forwarded-Proto", proto)
			}
			for _, headers := range []map[string]string{path.AppendHeaders, split.AppendHeaders} {
				for name, value := range headers {
					pr.Out.Header.Set(name, value)
				}
			}
		}, ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			log.Printf("%s %s%s to %s: %v", r.Method, host, r.URL.Path, backend, err)
			http.Error(w, "upstream connect error: "+err.Error(), http.StatusBadGateway)
		}}
		proxy.ServeHTTP(w, r)
	})
}

func matches(path v1alpha1.HTTPIngressPath, r *http.Request) bool {
	for name, match := range path.Headers {
		if r.Header.Get(name) != match.Exact {
			return false
		}
	}
	return strings.HasPrefix(r.URL.Path, path.Path)
}

func choose(splits []v1alpha1.IngressBackendSplit) v1alpha1.IngressBackendSplit {
	left := rand.IntN(100)
	for _, split := range splits {
		if left -= split.Percent; left < 0 {
			return split
		}
	}
	return splits[0]
}

// backend returns a ready endpoint of the Service, as Envoy's endpoint discovery does; an ExternalName (of another route) is dialled by its name.
func (c *controller) backend(to v1alpha1.IngressBackend) (string, *http.Transport, error) {
	service, err := c.services.Services(to.ServiceNamespace).Get(to.ServiceName)
	if err != nil {
		return "", nil, err
	}
	if service.Spec.Type == corev1.ServiceTypeExternalName {
		return net.JoinHostPort(service.Spec.ExternalName, to.ServicePort.String()), http1, nil
	}
	port := slices.IndexFunc(service.Spec.Ports, func(p corev1.ServicePort) bool {
		return p.Name == to.ServicePort.StrVal || p.Port == to.ServicePort.IntVal
	})
	if port < 0 {
		return "", nil, fmt.Errorf("service %s/%s has no port %s", service.Namespace, service.Name, to.ServicePort.String())
	}
	name, transport := service.Spec.Ports[port].Name, http1
	if strings.HasPrefix(name, "http2") || strings.HasPrefix(name, "h2c") || strings.HasPrefix(name, "grpc") {
		transport = h2c
	}
	found, err := c.slices.EndpointSlices(to.ServiceNamespace).List(labels.SelectorFromSet(labels.Set{discoveryv1.LabelServiceName: to.ServiceName}))
	must(err)
	var ready []string
	for _, slice := range found {
		for _, p := range slice.Ports {
			if p.Name == nil || *p.Name != name || p.Port == nil {
				continue
			}
			for _, endpoint := range slice.Endpoints {
				if endpoint.Conditions.Ready == nil || *endpoint.Conditions.Ready {
					ready = append(ready, net.JoinHostPort(endpoint.Addresses[0], fmt.Sprint(*p.Port)))
				}
			}
		}
	}
	if len(ready) == 0 {
		return "", nil, fmt.Errorf("service %s/%s has no ready endpoint", service.Namespace, service.Name)
	}
	return ready[rand.IntN(len(ready))], transport, nil
}

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
